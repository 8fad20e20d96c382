"""Fig. 5: at the rate alpha0, 30-softsync stays at chance; at alpha0/30 it learns, as does 4-softsync at alpha0/4."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from paper_figures.rudra.groups import modulation_groups
from paper_figures.rudra.readings import error_steps, runs_of
from paper_figures.rudra.settings import EPOCHS
from suite.claims.measured import exact, point
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities, row_by_row
from suite.papers.counterfeits import edited, forged, genuine
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    return modulation_groups(profile)


def measure_chance(evidence: Evidence) -> Quantities:
    yield "chance-level", exact(100 * (1 - 1 / DATASETS["cifar10"].classes))


def measure_divergence(evidence: Evidence) -> Quantities:
    """The lowest and the highest error at any evaluation of 30-softsync at alpha0."""
    failed = runs_of(evidence, "alpha0")
    seen = [100 * float(error) for run in failed for error in run.curve("evaluations")["test_error"]]
    ids = [run.id for run in failed]
    yield "n30-diverges", point([min(seen), max(seen)], n=len(failed), runs=ids)


def measure_errors(evidence: Evidence) -> Quantities:
    pairs = {"n30-lower": ("alpha0/30", "alpha0"), "n4-lower": ("alpha0/4", "alpha0 of 4-softsync")}
    yield from row_by_row((name, partial(error_steps, evidence, groups)) for name, groups in pairs.items())


@genuine("rudra/fig5/n30-diverges")
def one_class_at_all_times(evidence: Evidence) -> Evidence:
    """The network names the same class for every image at every evaluation."""
    return edited(evidence, lambda run: forged(run, evaluations=guessing(run.curve("evaluations"))), "alpha0")


def guessing(evaluations: pd.DataFrame) -> pd.DataFrame:
    return evaluations.assign(test_error=0.9)


def frame(evidence: Evidence) -> pd.DataFrame:
    """Test errors in % of stored runs. Columns: configuration, seed, epoch, error. Raises Missing without any."""
    import pandas as pd

    found = []
    for group in evidence.groups:
        name = f"{'4' if '4' in group else '30'}-softsync, {group.partition(' ')[0]}"
        for run in runs_of(evidence, group):
            curve = run.curve("evaluations")
            error = 100 * curve["test_error"]
            found.append(
                pd.DataFrame({"configuration": name, "seed": run.spec.seed, "epoch": curve["epoch"], "error": error})
            )
    return pd.concat(found, ignore_index=True)


def draw(evidence: Evidence, figure: Figure) -> None:
    if not evidence.groups:
        raise Missing(f"nothing is trained at profile {evidence.profile}")
    import seaborn as sns

    from suite.report.style import GRID, PALETTE

    table = frame(evidence)
    axes = figure.subplots()
    names = list(dict.fromkeys(table["configuration"]))
    looks: dict[str, Any] = {
        "hue": "configuration",
        "style": "configuration",
        "palette": PALETTE[: len(names)],
        "markers": True,
    }
    sns.lineplot(table, x="epoch", y="error", units="seed", estimator=None, ax=axes, **looks)
    chance = printed_value("rudra/fig5/chance-level")
    axes.axhline(chance, color=GRID, linestyle="--", linewidth=1, label=f"printed: constant {chance:.0f}%")
    epochs = table["epoch"].max()
    if epochs < EPOCHS - 1:
        axes.set_title(f"the first {epochs:.0f} of {EPOCHS} epochs, drops of the rate moved with them")
    axes.set(xlabel="epoch", ylabel="test error (%)", ylim=(0, 100))
    axes.legend(loc="lower left")


ARTIFACTS = (
    Artifact(
        "rudra/fig5",
        "Test error with and without dividing the rate by staleness",
        runs,
        (measure_chance, measure_divergence, measure_errors),
        draw,
        frame=frame,
        alt="Test error against epochs of 30-softsync: at alpha0 it stays at 90%, at alpha0/30 it falls.",
    ),
)
