"""The four-step method on systems that obey the models exactly, and the two communication models."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial

from reference_impls.inverse_law_model import Law, System, convergence_seconds
from suite.batch_size.choice import choose
from suite.batch_size.knee import fit_knee
from suite.batch_size.law import FitError, Updates, fit_inverse_law
from suite.claims.measured import exact, interval
from suite.papers.artifact import Evidence, Quantities

BATCHES = tuple(2**k for k in range(11))
LATENCIES = (0.0, 1e-6, 1e-5)  # seconds per message
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
    """Log-log slope of the communication time over the learners, from the messages of the two schemes.

    The interval covers latencies from none to 10 microseconds, from switched InfiniBand to a slow network stack.
    """
    many = [2**k for k in range(3, 9)]
    for name, seconds in (("allreduce-constant", allreduce_seconds), ("ps-linear", server_seconds)):
        slopes = [_slope(many, partial(seconds, latency=latency)) for latency in LATENCIES]
        yield name, interval(slopes[1], min(slopes), max(slopes), kind="simulated")


def allreduce_seconds(learners: int, latency: float = 0.0) -> float:
    """Recursive halving and doubling among a power of two of learners, with every piece's addends followed.

    A learner swaps half of what it is still responsible for with a partner at half the last distance, until each
    has summed its own piece; the pieces then travel back the same way. Raises ValueError for another number.
    """
    if learners < 1 or learners & (learners - 1):
        raise ValueError(f"halving and doubling pairs a power of two of learners, not {learners}")
    piece = BYTES / learners / BANDWIDTH  # seconds on a link
    everyone = (1 << learners) - 1
    held = [dict.fromkeys(range(learners), 1 << own) for own in range(learners)]  # addends as bits, by piece
    elapsed, distance = 0.0, learners // 2
    while distance:
        kept = [{p: sums for p, sums in mine.items() if not (p ^ own) & distance} for own, mine in enumerate(held)]
        elapsed += latency + piece * max(
            len(mine) - len(mine_kept) for mine, mine_kept in zip(held, kept, strict=True)
        )
        held = [{p: sums | held[own ^ distance][p] for p, sums in mine.items()} for own, mine in enumerate(kept)]
        distance //= 2
    distance = 1
    while distance < learners:
        elapsed += latency + piece * max(map(len, held))
        held = [mine | held[own ^ distance] for own, mine in enumerate(held)]
        distance *= 2
    assert all(len(mine) == learners and set(mine.values()) == {everyone} for mine in held), "a sum is incomplete"
    return elapsed


def server_seconds(learners: int, latency: float = 0.0) -> float:
    """A synchronous server with one link each way: all gradients in, one after another, then all models out."""
    arrived = 0.0
    for _ in range(learners):
        arrived = max(arrived, latency) + BYTES / BANDWIDTH
    sent = arrived
    for _ in range(learners):
        sent += BYTES / BANDWIDTH
    return sent + latency


def _slope(learners: list[int], seconds: Callable[[int], float]) -> float:
    import numpy as np

    return float(np.polyfit(np.log(learners), np.log([seconds(p) for p in learners]), 1)[0])
