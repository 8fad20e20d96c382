"""Equation 5: the time to converge on P learners, Eq. 2 times Eqs. 3 and 4, which predicts mean training time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from paper_figures.inverse_law.plots import logarithmic
from paper_figures.inverse_law.readings import mean_seconds, seed_seconds
from paper_figures.inverse_law.settings import LOOP, loop_runs
from paper_figures.inverse_law.synthetic_systems import draws, relative
from reference_impls.inverse_law_model import Law, System, convergence_seconds
from suite.claims.estimate import exact, over_seeds
from suite.claims.intervals import log_interval
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.catalogue import printed
from suite.papers.counterfeits import counterfeit, edited, forged, genuine
from suite.runs.store import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def measure_product(evidence: Evidence) -> Quantities:
    """Eq. 5 is Eq. 2 times Eqs. 3-4, written out here without the reference's functions."""

    def difference(law: Law, system: System, learners: int, batch: float) -> float:
        seconds = system.seconds_per_example * max(batch / learners, system.knee) + system.exchange_seconds
        product = (law.floor + law.sensitivity / batch) * seconds
        return relative(product, convergence_seconds(law, system, batch, learners))

    yield "combines", exact(max(difference(*draw, 10.0**k) for draw in draws() for k in range(6)))


def measure_accuracy(evidence: Evidence) -> Quantities:
    """Predicted over measured seconds to converge at every batch size that the law was not fitted to.

    Each batch size has its interval from its seeds; batch sizes are no repetitions of each other.
    """
    run = evidence.run("loop")
    measured: dict[int, list[float]] = {}
    for batch, seconds in seed_seconds(run.curve("runs")):
        measured.setdefault(batch, []).append(seconds)
    predicted = dict(zip(*(run.curve("batches")[c] for c in ("batch", "predicted_seconds")), strict=True))
    held_out = [b for b in measured if b not in LOOP.settings["converge"]]
    found = [log_interval([predicted[b] / s for s in measured[b]]) for b in held_out]
    yield "accurate", over_seeds(found, [run.id], f"M = {', '.join(map(str, held_out))}")


@counterfeit("inverse_law/eq5/accurate")
def twice_as_long(evidence: Evidence) -> Evidence:
    """Every training takes twice what was measured."""
    return edited(evidence, lambda run: retimed(run, lambda table: 2 * table["seconds"]), "loop")


@genuine("inverse_law/eq5/accurate")
def as_predicted(evidence: Evidence) -> Evidence:
    """Every training takes what was predicted, seeds within a hundredth."""

    def exact(table: pd.DataFrame, predicted: dict[int, float]) -> pd.Series:
        return table["batch"].map(predicted) * (1 + 0.01 * (table["seed"] - table["seed"].mean()))

    def told(run: Run) -> Run:
        batches = run.curve("batches")
        predicted = dict(zip(batches["batch"], batches["predicted_seconds"], strict=True))
        return retimed(run, lambda table: exact(table, predicted))

    return edited(evidence, told, "loop")


def retimed(run: Run, seconds: Callable[[pd.DataFrame], pd.Series]) -> Run:
    """The trainings of a run with other seconds."""
    table = run.curve("runs")
    return forged(run, runs=table.assign(seconds=seconds(table)))


def frame(evidence: Evidence) -> pd.DataFrame:
    """A row per batch size and seed: measured seconds to converge (median of the repeats), predicted ones.

    ``counted`` is whether the law was fitted to the updates of this batch size.
    """
    import pandas as pd

    run = evidence.run("loop")
    batches, counted = run.curve("batches"), run.spec.settings["converge"]
    predicted = dict(zip(batches["batch"], batches["predicted_seconds"], strict=True))
    rows = [
        (batch, seconds, predicted[batch], batch in counted) for batch, seconds in seed_seconds(run.curve("runs"))
    ]
    return pd.DataFrame(rows, columns=["batch", "seconds", "predicted", "counted"])


def draw(evidence: Evidence, figure: Figure) -> None:
    """Predicted and measured seconds to converge by batch size, the size picked, and below it their ratio."""
    import seaborn as sns

    from suite.report.style import GRID, LINES, PALETTE

    run = evidence.run("loop")
    table, mean, chosen = frame(evidence), mean_seconds(run.curve("runs")), run.results["chosen"]
    best = min(mean, key=lambda batch: mean[batch])
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    looks: dict[str, Any] = {"marker": "o", "color": PALETTE[1], "linestyle": LINES[1], "errorbar": ("pi", 100)}
    sns.lineplot(table, x="batch", y="seconds", label="measured: mean and range of the seeds", ax=axes, **looks)
    counted = table[table["counted"]].groupby("batch")["seconds"].mean()
    circle: dict[str, Any] = {"markersize": 9, "markerfacecolor": "none", "color": PALETTE[1]}
    axes.plot(counted.index, counted, "o", label="updates of these were counted", **circle)
    sns.lineplot(
        table, x="batch", y="predicted", errorbar=None, color=PALETTE[0], label="predicted: N(M) T(M)", ax=axes
    )
    for panel in (axes, below):
        panel.axvline(chosen, linewidth=0.8, linestyle=":", color=GRID, label=f"picked: {chosen}")
    logarithmic(axes, sorted(mean))
    axes.set_ylabel("seconds to converge")
    axes.set_title(
        f"picked {chosen}, fastest {best}: time at the choice over the best {mean[chosen] / mean[best]:.2f}"
    )
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(0.25, 1))
    sns.lineplot(table.assign(ratio=table["predicted"] / table["seconds"]), x="batch", y="ratio", ax=below, **looks)
    low, high = printed("inverse_law/eq5/accurate")
    below.axhspan(low, high, color=GRID, alpha=0.3, linewidth=0, label=f"rule: {low:g} to {high:g}")
    below.set(xlabel="mini-batch size M (examples)", ylabel="predicted /\nmeasured", ylim=(0, 2))
    handles, names = below.get_legend_handles_labels()
    below.legend(handles[-1:], names[-1:], fontsize="small", loc="lower right")


ARTIFACTS = (
    Artifact(
        "inverse_law/eq5",
        "Time to converge on P learners",
        loop_runs,
        (measure_product, measure_accuracy),
        draw=draw,
        frame=frame,
        alt="Predicted and measured seconds to converge against batch size, and their ratio beside the printed 1.",
        size=(6.4, 5.0),
    ),
)
