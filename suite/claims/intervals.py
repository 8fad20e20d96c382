"""Intervals for few repetitions, paired comparisons, and the probability that a test alarms.

With three to five seeds a bootstrap interval covers far less than it says; Student's t on a suitable scale
(logarithms for updates or seconds to a target) is used instead. Censored runs are counted, never dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

from suite.lazy import np, scipy

LEVEL = 0.05  # probability with which an interval misses the truth
TIE = 1e-9  # two shares of images that differ by less are the same number of images


def at_least(share: Any, level: float) -> Any:
    """Whether a share of images (a number or an array) is at least ``level``: as many images are enough.

    A share is a count that was divided, and often subtracted from 1: compared as it is, rounding would decide a tie.
    """
    return share >= level - TIE


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval from n values.

    ``freedom``: degrees of freedom of the Student's t that made the interval, 0 where another distribution did, None
    where the ends are those of a range, in which nobody has a confidence.
    """

    mean: float
    low: float
    high: float
    n: int
    freedom: float | None = 0

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high


def least(seen: Sequence[Interval]) -> Interval:
    """What can be said of all: above a bound where the lowest is, below it as soon as one is."""
    return _of_all(seen, np.min)


def most(seen: Sequence[Interval]) -> Interval:
    """The same from the other side: below a bound where the highest is, above it as soon as one is."""
    return _of_all(seen, np.max)


def _of_all(seen: Sequence[Interval], end: Callable[..., Any]) -> Interval:
    """An end of the means, lows and highs; NumPy's passes a NaN on, which Python's drops unless it comes first."""
    mean, low, high = end([(i.mean, i.low, i.high) for i in seen], axis=0).tolist()
    return Interval(mean, low, high, seen[0].n, seen[0].freedom)


def share_above(seen: Sequence[Interval], bound: float) -> Interval:
    """Share of values above a bound, from those whose whole interval lies there to those of which some does.

    It is no number where one of them is none.
    """
    ends = np.array([(i.mean, i.low, i.high) for i in seen])
    share, low, high = np.where(np.isnan(ends), np.nan, ends > bound).mean(0).tolist()
    return Interval(share, low, high, seen[0].n, None)


def pooled(samples: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Standard deviation within samples that scatter alike, infinite where each has one value, and its freedom."""
    squares, freedom = 0.0, 0
    for values in samples:
        middle = fmean(values)
        squares += math.fsum((value - middle) ** 2 for value in values)
        freedom += len(values) - 1
    return math.sqrt(squares / freedom) if freedom else math.inf, freedom


def contrast(
    weights: Mapping[str, float], samples: Mapping[str, Sequence[float]], spread: tuple[float, int]
) -> Interval:
    """Weighted sum of the means of samples with its 95% interval, from their ``pooled`` spread.

    Args:
        weights: 1 for a mean, -1 and 1 for a step, 1/k for the mean of k samples.
        samples: by name, those weighted and perhaps others, at least one value each.
        spread: standard deviation of a value, and its degrees of freedom.
    """
    deviation, freedom = spread
    sizes = {name: len(samples[name]) for name in weights}
    value = math.fsum(weight * fmean(samples[name]) for name, weight in weights.items())
    share = math.sqrt(math.fsum(weight**2 / sizes[name] for name, weight in weights.items()))
    half = quantile(freedom, LEVEL) * deviation * share if freedom else math.inf
    return Interval(value, value - half, value + half, min(sizes.values()), freedom)


def over_ends(middle: float, values: Sequence[float]) -> Interval:
    """A value with the least and the largest of several, which are ends of a range and no repetitions."""
    return Interval(middle, min(values), max(values), 1, None)


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Student t interval of the mean. One value gives an infinite interval: one run says nothing of spread."""
    n = len(values)
    if n == 0:
        raise ValueError("an interval needs at least one value")
    mean = math.fsum(values) / n
    if n == 1:
        return Interval(mean, -math.inf, math.inf, 1)
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = quantile(n - 1, 1 - confidence) * deviation / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n, n - 1)


def log_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Interval of the geometric mean of positive values, by Student t on their logarithms."""
    if any(v <= 0 for v in values):
        raise ValueError("a log interval needs positive values")
    inner = mean_interval([math.log(v) for v in values], confidence)
    return Interval(_exp(inner.mean), _exp(inner.low), _exp(inner.high), inner.n, inner.freedom)


def _exp(power: float) -> float:
    """e to a power, infinite where no float is so large."""
    try:
        return math.exp(power)
    except OverflowError:
        return math.inf


def percent_saved(log_ratio: float) -> float:
    """What b saves of a, in per cent, where ``log_ratio`` is the logarithm of a / b; negative where b takes more."""
    return 100 * (1 - math.exp(-log_ratio))


def paired_difference(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Interval:
    """Interval of the mean of b - a over pairs that share a seed."""
    return mean_interval([y - x for x, y in zip(a, b, strict=True)], confidence)


def paired_ratio(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Interval:
    """Interval of the geometric mean of b / a over pairs that share a seed."""
    return log_interval([y / x for x, y in zip(a, b, strict=True)], confidence)


def jackknife_variance(parts: Any) -> Any:
    """Variance of a statistic from its values [n, ...], each with one of the n repetitions left out."""
    n = len(parts)
    return (n - 1) / n * ((parts - parts.mean(0)) ** 2).sum(0)


def wilson(successes: int, trials: int) -> Interval:
    """Wilson interval (95%) of a proportion."""
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"{successes} successes of {trials} trials is not a proportion")
    share, z = successes / trials, quantile(0, LEVEL)
    middle, half = share + z**2 / (2 * trials), z * math.sqrt(share * (1 - share) / trials + (z / trials) ** 2 / 4)
    low, high = (middle - half) / (1 + z**2 / trials), (middle + half) / (1 + z**2 / trials)
    return Interval(share, low if successes else 0.0, high if successes < trials else 1.0, trials)


def log_slope(x: Any, y: Any) -> Interval:
    """Slope of log y over log x by least squares, with Student's t on the scatter about the line."""
    across, along = (np.log(np.asarray(values, dtype=float)) for values in (x, y))
    across = across - across.mean()
    n, squares = len(across), float(across @ across)
    slope = float(across @ along) / squares
    rest = along - along.mean() - slope * across
    half = quantile(n - 2, LEVEL) * math.sqrt(float(rest @ rest) / (n - 2) / squares)
    return Interval(slope, slope - half, slope + half, n, n - 2)


@cache
def quantile(freedom: float | None, level: float) -> float:
    """Half the width of an interval that misses the truth with probability ``level``, in standard errors.

    Student's t with so many degrees of freedom, the normal distribution for none.
    """
    return float(scipy.special.stdtrit(freedom, 1 - level / 2) if freedom else scipy.special.ndtri(1 - level / 2))


def tail(freedom: float | None, errors: float) -> float:
    """The probability of an estimate further off than so many standard errors: the inverse of ``quantile``."""
    return 2 * float(scipy.special.stdtr(freedom, -errors) if freedom else scipy.special.ndtr(-errors))


def holm(p_values: Sequence[float], alarm: float) -> list[bool]:
    """Which hypotheses Holm's procedure rejects, at probability ``alarm`` of rejecting any that is true."""
    rejected = [False] * len(p_values)
    for done, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] > alarm / (len(p_values) - done):
            break
        rejected[place] = True
    return rejected
