"""Fig. 5: at the rate alpha0, 30-softsync stays at chance; at alpha0/30 it learns, as does 4-softsync at alpha0/4."""

from __future__ import annotations

from paper_figures.rudra import errors
from paper_figures.rudra.drawing import draw_evaluations, evaluations
from paper_figures.rudra.errors import CHANCE
from paper_figures.rudra.plans import modulation_groups
from paper_figures.rudra.settings import EPOCHS
from suite.claims.intervals import Interval
from suite.papers.figure import FIRST, Artifact, Figure, Frame, Groups, pd
from suite.report.style import GRID, named_ticks

SHORT = ", shortened"


def beside(profile: str) -> Groups:
    """Seeds that give the spread, and runs of a few epochs, which are drawn where there are no longer ones."""
    short = modulation_groups("reduced") if profile == "paper" else {}
    return {**errors.own_seeds(profile), **{f"{name}{SHORT}": specs for name, specs in short.items()}}


PANEL = Artifact(
    "rudra/fig5", "Test error with and without dividing the rate by staleness", modulation_groups, beside=beside
)

PANEL.quantities["n30-error"] = errors.mean("alpha0/30")
PANEL.quantities["n30-lower"] = errors.steps("alpha0/30", "alpha0")
PANEL.quantities["n4-lower"] = errors.steps("alpha0/4", "alpha0 of 4-softsync")


@PANEL.quantity("n30-diverges", ["alpha0"], seeds=FIRST)
def extremes(frame: Frame) -> list[Interval]:
    """The lowest and the highest error at any evaluation of 30-softsync at alpha0, after the untrained network's."""
    trained, seeds = frame.table("evaluations", "alpha0").query("epoch > 0"), len(frame["alpha0"])
    seen = 100 * trained["test_error"].astype(float)
    return [Interval(end, end, end, seeds) for end in (float(seen.min()), float(seen.max()))]


def named(group: str) -> str:
    """A group as the legend has it, such as "4-softsync, alpha0/4"."""
    return f"{4 if '4' in group else 30}-softsync, {group.partition(' ')[0].rstrip(',')}"


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """Test errors in % of stored runs. Columns: configuration, seed, epoch, error. Raises Missing without any."""
    shown = {}
    for group in frame.groups:
        if group in errors.OWN or (group.endswith(SHORT) and frame.results(group.removesuffix(SHORT))):
            continue  # where the whole run is there, the short one is not shown
        if not frame.results(group):
            continue
        epochs = frame.table("evaluations", group)["epoch"].max()
        length = "" if round(epochs) == EPOCHS else f" ({epochs:.0f} epochs)"
        shown[group] = named(group) + length
    return evaluations(frame, shown, "configuration")


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Test error against epochs of 30-softsync: at alpha0 it stays at 90%, at alpha0/30 it falls."""
    rows, axes = table(frame), figure.subplots()
    draw_evaluations(axes, rows, "configuration")
    axes.axhline(
        CHANCE, color=GRID, linestyle="--", linewidth=1, label=f"printed: constant {CHANCE:.0f}%, as guessing"
    )
    epochs = rows["epoch"].max()
    absent = [named(group) for group in modulation_groups(frame.profile) if not frame.results(group)]
    if round(epochs) < EPOCHS:
        axes.set_title(f"the first {epochs:.0f} of {EPOCHS} epochs, drops of the rate moved with them")
    elif absent:
        axes.set_title(f"not run: {'; '.join(absent)}")
    axes.set(xlabel="epoch", ylabel="test error (%)", ylim=(0, 100))
    named_ticks(axes, [at for at in (1, 2, 5, 10, 20, 50, 100, 140) if at <= epochs])
    axes.legend(loc="lower left")
