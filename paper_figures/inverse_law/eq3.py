"""Equation 3: seconds per update are computation plus the communication that does not overlap with it.

One learner does not communicate; an all-reduce takes about constant time in the number of learners, a synchronous
parameter server time in proportion to it. Both are played message by message.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from paper_figures.inverse_law.synthetic_systems import draws
from reference_impls.inverse_law_model import Law, System
from suite.claims.estimate import exact, interval
from suite.papers.artifact import Artifact, Evidence, Quantities

LATENCIES = (0.0, 1e-6, 1e-5)  # seconds per message
BYTES, BANDWIDTH = 4 * 671_802, 1e9  # gradients of the large LeNet over a 1 GB/s link


def measure_sum(evidence: Evidence) -> Quantities:
    """Eq. 3 written out beside the reference's, and no communication for one learner."""

    def difference(law: Law, system: System, learners: int, batch: float) -> float:
        seconds = system.seconds_per_example * max(batch / learners, system.knee) + system.exchange_seconds
        return abs(seconds - system.update(batch, learners))

    yield "sum", exact(max(difference(*draw, 10.0**k) for draw in draws() for k in range(4)))
    yield "no-comm-single", exact(max(system.exchange(1) for _, system, _ in draws()))


def measure_communication(evidence: Evidence) -> Quantities:
    """Log-log slope of the communication time over the learners, from the messages of the two schemes.

    The interval covers latencies from none to 10 microseconds, from switched InfiniBand to a slow network stack.
    """
    many = [2**k for k in range(1, 9)]
    for name, seconds in (("allreduce-constant", allreduce_seconds), ("ps-linear", server_seconds)):
        slopes = [_slope(many, partial(seconds, latency=latency)) for latency in LATENCIES]
        yield name, interval(slopes[1], min(slopes), max(slopes))


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


ARTIFACTS = (
    Artifact(
        "inverse_law/eq3",
        "Seconds per update: computation plus communication",
        measures=(measure_sum, measure_communication),
    ),
)
