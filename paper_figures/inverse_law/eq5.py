"""Equation 5: the time to converge on P learners, Eq. 2 times Eqs. 3 and 4, which predicts mean training time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.inverse_law.plots import logarithmic
from paper_figures.inverse_law.readings import mean_seconds, seed_seconds
from paper_figures.inverse_law.settings import LOOP, loop_runs
from paper_figures.inverse_law.synthetic_systems import draws, relative
from reference_impls.inverse_law_model import Law, System, convergence_seconds
from suite.claims.intervals import log_interval
from suite.claims.measured import exact, interval
from suite.papers.artifact import Artifact, Evidence, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure_product(evidence: Evidence) -> Quantities:
    """Eq. 5 is Eq. 2 times Eqs. 3-4, written out here without the reference's functions."""

    def difference(law: Law, system: System, learners: int, batch: float) -> float:
        seconds = system.seconds_per_example * max(batch / learners, system.knee) + system.exchange_seconds
        product = (law.floor + law.sensitivity / batch) * seconds
        return relative(product, convergence_seconds(law, system, batch, learners))

    yield "combines", exact(max(difference(*draw, 10.0**k) for draw in draws() for k in range(6)))


def measure_accuracy(evidence: Evidence) -> Quantities:
    """Predicted over measured mean seconds to converge, at batch sizes between those the law was fitted to."""
    run = evidence.run("loop")
    measured = mean_seconds(run.curve("runs"))
    fitted = LOOP.settings["converge"]
    held_out = [b for b in measured if min(fitted) < b < max(fitted) and b not in fitted]
    predicted = dict(zip(*(run.curve("batches")[c] for c in ("batch", "predicted_seconds")), strict=True))
    found = log_interval([predicted[b] / measured[b] for b in held_out])
    yield "accurate", interval(found.mean, found.low, found.high, kind="measured", n=found.n, runs=[run.id])


def draw(evidence: Evidence, figure: Figure) -> None:
    """Predicted and measured seconds to converge by batch size, the batch size picked, and its regret."""
    from suite.report.style import PALETTE

    run = evidence.run("loop")
    table, measured = run.curve("batches"), mean_seconds(run.curve("runs"))
    fitted, chosen = run.spec.settings["converge"], run.results["chosen"]
    best = min(measured, key=lambda batch: measured[batch])
    axes = figure.add_subplot()
    each = seed_seconds(run.curve("runs"))
    axes.plot([b for b, _ in each], [s for _, s in each], ".", markersize=3, color="0.6", label="measured, each seed")
    axes.plot(list(measured), list(measured.values()), "o", color=PALETTE[1], label="measured, mean")
    axes.plot(
        fitted,
        [measured[b] for b in fitted],
        "o",
        markersize=9,
        markerfacecolor="none",
        color=PALETTE[1],
        label="updates of these were counted",
    )
    axes.plot(table["batch"], table["predicted_seconds"], "-", color=PALETTE[0], label="predicted: N(M) T(M)")
    axes.axvline(chosen, linewidth=0.8, linestyle="--", color="0.5", label=f"picked: {chosen}")
    logarithmic(axes, list(table["batch"]))
    axes.set_xlabel("mini-batch size M (examples)")
    axes.set_ylabel("seconds to converge")
    axes.set_title(
        f"picked {chosen}, fastest {best}: time at the choice over the best {measured[chosen] / measured[best]:.2f}"
    )
    axes.legend(fontsize="small")


ARTIFACTS = (
    Artifact(
        "inverse_law/eq5",
        "Time to converge on P learners",
        loop_runs,
        (measure_product, measure_accuracy),
        draw=draw,
        alt="Predicted and measured seconds to converge against batch size.",
    ),
)
