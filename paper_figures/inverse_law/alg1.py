"""The method of choosing a batch size, in four steps.

Time a few updates at several batch sizes, count the updates to converge at two or more, fit N_inf and alpha, and
take the batch size of the least product. It is played on systems that obey the models exactly, and its premise, that
seconds per update stay about constant during a training, is timed.
"""

from __future__ import annotations

import math
import random
from statistics import median

from paper_figures.inverse_law.settings import BATCHES, loop_runs
from reference_impls.inverse_law_model import Law, System, convergence_seconds
from suite.batch_size.chosen import choose
from suite.batch_size.law import FitError, Updates, fit_inverse_law
from suite.claims.estimate import exact, over_seeds
from suite.claims.intervals import log_interval
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged
from suite.runs.store import Run


def measure_two_points(evidence: Evidence) -> Quantities:
    """The least number of batch sizes from which planted constants are found again."""
    draw = random.Random(0)
    needed = []
    for _ in range(50):
        law = Law(10 ** draw.uniform(1, 4), 10 ** draw.uniform(2, 6))
        needed.append(next(count for count in range(1, 12) if _recovers(law, BATCHES[:: -(-11 // count)][:count])))
    yield "two-points", exact(max(needed))


def _recovers(law: Law, batches: tuple[int, ...]) -> bool:
    try:
        fit = fit_inverse_law([Updates(batch, (law.updates(batch),)) for batch in batches])
    except FitError:
        return False
    return math.isclose(fit.floor, law.floor, rel_tol=1e-6) and math.isclose(
        fit.sensitivity, law.sensitivity, rel_tol=1e-6
    )


def measure_minimum(evidence: Evidence) -> Quantities:
    """Batch size chosen from timings and two counts, minus the one of least true time among all sizes timed."""
    draw = random.Random(1)
    misses = []
    for _ in range(200):
        law = Law(10 ** draw.uniform(1, 4), 10 ** draw.uniform(2, 6))
        system = System(10 ** draw.uniform(-6, -3), 10 ** draw.uniform(0, 3))
        best = min(BATCHES, key=lambda batch: convergence_seconds(law, system, batch))
        counted = [Updates(batch, (law.updates(batch),)) for batch in (4, 256)]
        misses.append(abs(choose({b: system.compute(b) for b in BATCHES}, counted).batch - best))
    yield "picks-minimum", exact(max(misses))


def measure_constancy(evidence: Evidence) -> Quantities:
    """Seconds per update in the last fifth of a training over those in its first fifth."""
    run = evidence.run("loop")
    runs = run.curve("runs")
    runs = runs[runs["updates"] >= 50]  # a fifth of fewer is too short to time
    ratios = [median(part["late"] / part["early"]) for _, part in runs.groupby(["batch", "seed"])]
    found = log_interval(ratios)
    yield "few-updates", over_seeds(found, [run.id])


@counterfeit("inverse_law/alg1/few-updates")
def updates_grow_dearer(evidence: Evidence) -> Evidence:
    """The last fifth of every training takes half as long again."""

    def dearer(run: Run) -> Run:
        table = run.curve("runs")
        return forged(run, runs=table.assign(late=1.5 * table["late"]))

    return edited(evidence, dearer, "loop")


ARTIFACTS = (
    Artifact(
        "inverse_law/alg1",
        "The four-step choice of the batch size",
        loop_runs,
        (measure_two_points, measure_minimum, measure_constancy),
    ),
)
