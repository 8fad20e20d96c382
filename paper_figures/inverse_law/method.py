"""The four-step method on systems that obey the models exactly, and the two communication models."""

from __future__ import annotations

import math
import random

from paper_figures.artifact import Evidence, Quantities
from reference_impls.inverse_law_model import Law, System, convergence_seconds
from suite.batch_choice import choose
from suite.fit import FitError, Updates, fit_inverse_law
from suite.measured import exact, point
from suite.update_time import fit_knee

BATCHES = tuple(2**k for k in range(11))
BYTES, BANDWIDTH = 4 * 671_802, 1e9  # gradients of the large LeNet over a 1 GB/s link


def two_points(evidence: Evidence) -> Quantities:
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


def picks_minimum(evidence: Evidence) -> Quantities:
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


def single_core_knee(evidence: Evidence) -> Quantities:
    """The knee fitted to a core that takes one example after another, 1 ms each."""

    def seconds(batch: int, cores: int) -> float:
        loads = [0] * cores
        for example in range(batch):
            loads[example % cores] += 1
        return 1e-3 * max(loads)

    yield "single-core-knee", exact(fit_knee({batch: seconds(batch, 1) for batch in BATCHES}).knee)


def communication(evidence: Evidence) -> Quantities:
    """Log-log slope of the communication time over the learners, from queues of the two schemes.

    A ring of P learners moves 2 (P - 1) pieces of 1/P of the gradient over each link; the link of one server
    carries P gradients in and P models out, one after another.
    """
    many = [2**k for k in range(3, 11)]
    yield "allreduce-constant", point(_slope(many, ring_seconds), kind="simulated")
    yield "ps-linear", point(_slope(many, server_seconds), kind="simulated")


def ring_seconds(learners: int) -> float:
    """All-reduce around a ring: reduce-scatter, then all-gather, in lockstep."""
    return sum(BYTES / learners / BANDWIDTH for _ in range(2 * (learners - 1)))


def server_seconds(learners: int) -> float:
    """A synchronous server with one link each way: the last gradient in, then the last model out."""
    arrived = sent = 0.0
    for _ in range(learners):
        arrived += BYTES / BANDWIDTH
    for _ in range(learners):
        sent += BYTES / BANDWIDTH
    return arrived + sent


def _slope(learners: list[int], seconds: object) -> float:
    import numpy as np

    assert callable(seconds)
    return float(np.polyfit(np.log(learners), np.log([seconds(p) for p in learners]), 1)[0])
