"""How far final errors on CIFAR-10 lie apart by chance, so that one trained seed can be judged.

The stated source is the paper's own Table 2: six pairs of its rows have mu and lambda in common and differ only in n,
on which by section 5.3 the error hardly depends. The spread within these pairs, 0.35 points, stands for that between
seeds; what staleness does to an error only widens it. The squares of our own seeds are pooled with theirs, so
intervals narrow as seeds are added and widen where ours scatter more. The test set is the paper's own, all of it, so
no error of sampling it is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean

from paper_figures.rudra.simulations import TABLE2
from suite.claims.intervals import Interval
from suite.papers.printed import printed_value


@cache
def printed_pairs() -> tuple[tuple[float, float], ...]:
    """Printed errors in % of rows of Table 2 that differ in n alone."""
    found: dict[tuple[int, int], list[float]] = {}
    for at, (_, mu, learners) in enumerate(TABLE2, 1):
        found.setdefault((mu, learners), []).append(printed_value(f"rudra/table2/r{at:02d}-test-error"))
    return tuple((a, b) for a, b in (errors for errors in found.values() if len(errors) == 2))


def spread(samples: Iterable[Sequence[float]] = ()) -> tuple[float, int]:
    """Standard deviation of a final error in points, and its degrees of freedom: the pairs' and our ``samples``'."""
    squares, freedom = 0.0, 0
    for values in (*printed_pairs(), *samples):
        middle = fmean(values)
        squares += math.fsum((value - middle) ** 2 for value in values)
        freedom += len(values) - 1
    return math.sqrt(squares / freedom), freedom


def contrast(weights: Mapping[str, float], samples: Mapping[str, Sequence[float]]) -> Interval:
    """Weighted sum of mean errors with its 95% interval.

    ``samples``: final errors in % of each configuration, one per seed; ``weights``: 1 for an error, -1 and 1 for a
    step, 1/k for the mean of k configurations. Raises ValueError for a configuration without any seed.
    """
    from scipy.special import stdtrit

    if empty := [name for name in weights if not samples[name]]:
        raise ValueError(f"no seed of {empty}")
    deviation, freedom = spread(samples[name] for name in weights)
    value = math.fsum(weight * fmean(samples[name]) for name, weight in weights.items())
    share = math.sqrt(math.fsum(weight**2 / len(samples[name]) for name, weight in weights.items()))
    half = float(stdtrit(freedom, 0.975)) * deviation * share
    return Interval(value, value - half, value + half, min(len(samples[name]) for name in weights))
