"""How far final errors on CIFAR-10 lie apart by chance, so that few trained seeds can be judged.

The spread between seeds is measured on our own: three seeds of each of three named configurations, the baseline, one
of many small batches and the one with the largest printed error, pooled with whatever else has more than one seed.
Until all nine runs are stored the paper's own Table 2 stands in: six pairs of its rows have mu and lambda in common
and differ only in n, on which by section 5.3 the error hardly depends. The spread within these pairs is 0.35 points;
what staleness does to an error only widens it. The test set is the paper's own, all of it, so no error of sampling it
is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean

from paper_figures.rudra.settings import Configuration
from paper_figures.rudra.simulations import BASELINE, TABLE2
from suite.claims.intervals import Interval, mean_interval
from suite.papers.printed import printed_value

NAMED: tuple[Configuration, ...] = (BASELINE, (30, 4, 30), (10, 128, 10))
"""The configurations whose own seeds give the spread, named before their second seeds were run."""


@cache
def printed_pairs() -> tuple[tuple[float, float], ...]:
    """Printed errors in % of rows of Table 2 that differ in n alone."""
    found: dict[tuple[int, int], list[float]] = {}
    for at, (_, mu, learners) in enumerate(TABLE2, 1):
        found.setdefault((mu, learners), []).append(printed_value(f"rudra/table2/r{at:02d}-test-error"))
    return tuple((a, b) for a, b in (errors for errors in found.values() if len(errors) == 2))


def spread(samples: Iterable[Sequence[float]], own: Sequence[Sequence[float]] = ()) -> tuple[float, int]:
    """Standard deviation of a final error in points, and its degrees of freedom.

    Args:
        samples: final errors in % of the configurations at hand, one per seed.
        own: the same of the NAMED configurations, all of their seeds. Empty, the printed pairs stand in.
    """
    squares, freedom = 0.0, 0
    for values in (*(own or printed_pairs()), *samples):
        middle = fmean(values)
        squares += math.fsum((value - middle) ** 2 for value in values)
        freedom += len(values) - 1
    return math.sqrt(squares / freedom), freedom


def contrast(
    weights: Mapping[str, float], samples: Mapping[str, Sequence[float]], own: Mapping[str, Sequence[float]]
) -> Interval:
    """Weighted sum of mean errors with its 95% interval.

    Args:
        weights: 1 for an error, -1 and 1 for a step, 1/k for the mean of k configurations.
        samples: final errors in % of each configuration, one per seed.
        own: the same of the NAMED configurations, once all of their seeds are stored; each counts once.

    Raises:
        ValueError: for a configuration without any seed.
    """
    from scipy.special import stdtrit

    if empty := [name for name in weights if not samples[name]]:
        raise ValueError(f"no seed of {empty}")
    others = [samples[name] for name in weights if name not in own]
    deviation, freedom = spread(others, list(own.values()))
    value = math.fsum(weight * fmean(samples[name]) for name, weight in weights.items())
    share = math.sqrt(math.fsum(weight**2 / len(samples[name]) for name, weight in weights.items()))
    half = float(stdtrit(freedom, 0.975)) * deviation * share
    return Interval(value, value - half, value + half, min(len(samples[name]) for name in weights))


def agreement(printed: Sequence[float], ours: Sequence[float]) -> tuple[Interval, Interval]:
    """Root mean square of ours minus printed, and their correlation, over rows, with 95% intervals.

    The first is Student's t on the squared differences, its lower end no less than 0; the second is Fisher's z, or 0
    where ours do not differ.
    """
    from scipy import stats

    squares = mean_interval([(a - b) ** 2 for a, b in zip(ours, printed, strict=True)])
    ends = (squares.mean, max(0.0, squares.low), squares.high)
    apart = Interval(*(math.sqrt(end) for end in ends), n=1)
    if len(set(ours)) == 1:
        return apart, Interval(0.0, 0.0, 0.0, 1)
    found = stats.pearsonr(printed, ours)
    inner = found.confidence_interval(0.95)
    return apart, Interval(float(found.statistic), float(inner.low), float(inner.high), 1)
