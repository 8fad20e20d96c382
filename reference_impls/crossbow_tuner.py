"""How many learners a GPU should have: Crossbow's Algorithm 2, and a rule that settles.

Citation in :mod:`reference_impls.crossbow`; section 3.4. Plain numbers, so it runs on scripted throughputs.

Update rule (one GPU; GPUs are independent), with throughput t now and t' before:

    if t - t' > tau           l <- l + 1
    else if t < t' and l > 0  l <- l - 1
    t' <- t

    paper | code      | unit
    l_g   | learners  | learners
    t'_g  | last      | examples/second
    tau   | threshold | examples/second in Algorithm 2, a fraction of t' in the settling rule

Differs from the paper:
- As printed the count can fall to 0, where there is nothing left to measure, and it cycles around the peak:
  after a step down the throughput recovers, which asks for a step up. :func:`literal` keeps both.
- :func:`settling` takes the median of several readings, compares it with that of the previous count, steps
  back when the gain is too small, and then holds. The authors' code also stops for good at the first small
  gain and compares relatively (threshold 0.1), on one reading.
"""

from __future__ import annotations

from statistics import median
from typing import NamedTuple


class Literal(NamedTuple):
    """State of Algorithm 2; the initial values are lines 1-2."""

    learners: int = 1
    last: float = 0.0  # examples/second


def literal(tuner: Literal, throughput: float, *, threshold: float) -> Literal:
    """Lines 5-8. ``throughput`` and ``threshold`` in examples/second."""
    learners = tuner.learners
    if throughput - tuner.last > threshold:
        learners += 1
    elif throughput < tuner.last and learners > 0:
        learners -= 1
    return Literal(learners, throughput)


class Settling(NamedTuple):
    """State of the settling rule."""

    learners: int = 1
    last: float | None = None  # median throughput of one learner fewer, examples/second
    readings: tuple[float, ...] = ()  # of the present count
    holding: bool = False  # for good


def settling(
    tuner: Settling,
    throughput: float,
    *,
    threshold: float = 0.1,
    readings: int = 5,
    most: int | None = None,
) -> Settling:
    """The state after one more reading, in examples/second.

    ``threshold`` is the relative gain that a further learner must bring, ``readings`` how many are taken at
    each count, ``most`` the largest count that memory allows. Never below 1 learner.
    Raises ValueError if ``readings`` or ``most`` is below 1 or ``threshold`` is negative.
    """
    if readings < 1 or threshold < 0 or (most is not None and most < 1):
        raise ValueError(
            f"crossbow: readings={readings} and most={most} must be at least 1 and threshold={threshold} at least 0"
        )
    if tuner.holding:
        return tuner
    taken = (*tuner.readings, throughput)
    if len(taken) < readings:
        return tuner._replace(readings=taken)
    middle = median(taken)
    gained = tuner.last is None or middle > tuner.last * (1 + threshold)
    if not gained:
        return Settling(max(1, tuner.learners - 1), tuner.last, holding=True)
    if tuner.learners == most:
        return Settling(tuner.learners, middle, holding=True)
    return Settling(tuner.learners + 1, middle)
