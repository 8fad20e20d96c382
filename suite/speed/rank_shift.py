"""By how much one sample lies above another, by ranks: estimate, lower limit, p-value, and what would be found.

All four rest on the pairwise differences new_i - base_j. The number of them above s has, when the samples differ by
a shift of s, the distribution of Mann and Whitney's U whatever the distribution of the samples, so a few wild
values (a program started next door) can neither cause nor hide a finding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from suite.lazy import np, scipy

EXACT = 20_000  # pairs up to which U is counted out; the normal approximation beyond alarms a little less often
DRAWS = 400  # samples drawn to find what the test would see
SEED = 20


@lru_cache(maxsize=64)
def tail(m: int, n: int) -> np.ndarray:
    """P(U >= u) for u = 0..mn, where U counts the pairs in which the first of two like samples is the larger.

    The counts are the coefficients of the Gaussian binomial (m + n over m), by polynomial multiplication.
    """
    pairs = m * n
    if pairs > EXACT:
        deviation = math.sqrt(pairs * (m + n + 1) / 12)
        return scipy.special.ndtr((0.5 + pairs / 2 - np.arange(pairs + 1)) / deviation)
    m, n = min(m, n), max(m, n)
    counts = [1] + [0] * pairs
    for i in range(1, m + 1):
        for j in range(pairs, n + i - 1, -1):
            counts[j] -= counts[j - n - i]
        for j in range(i, pairs + 1):
            counts[j] += counts[j - i]
    total, above, left = math.comb(m + n, m), [], math.comb(m + n, m)
    for count in counts:
        above.append(left / total)
        left -= count
    return np.array(above)


def differences(new: Sequence[float], base: Sequence[float]) -> np.ndarray:
    """All new_i - base_j in ascending order."""
    return np.sort(np.subtract.outer(np.asarray(new, float), np.asarray(base, float)), axis=None)


def shift(new: Sequence[float], base: Sequence[float]) -> float:
    """Hodges and Lehmann's estimate: the median difference."""
    return float(np.median(differences(new, base)))


def p_value(new: Sequence[float], base: Sequence[float], at: float) -> float:
    """Probability of ranks at least this high were ``new`` shifted by no more than ``at``. Ties count against."""
    found = differences(new, base)
    return float(tail(len(new), len(base))[int((found > at).sum())])


def limit_rank(m: int, n: int, alarm: float) -> int | None:
    """Position among the ascending differences of the lower limit at error probability ``alarm``; None if none is.

    Samples too small for ``alarm`` to be reached by any ranks have no limit.
    """
    reached = np.flatnonzero(tail(m, n) <= alarm)
    return m * n - int(reached[0]) if len(reached) else None


def lower_limit(new: Sequence[float], base: Sequence[float], alarm: float) -> float:
    """The shift that is exceeded with confidence 1 - ``alarm``: ``p_value(new, base, at) <= alarm`` below it."""
    rank = limit_rank(len(new), len(base), alarm)
    return -math.inf if rank is None else float(differences(new, base)[rank])


def detectable(
    residuals: Sequence[float], m: int, n: int, at: float, alarm: float, power: float = 0.9, draws: int = DRAWS
) -> float:
    """The shift at which ``m`` new values against ``n`` old ones exceed ``at`` with probability ``power``.

    Samples are drawn from ``residuals`` (values less their own centre), which are widened by the share that
    centring took. A shift is found when it is larger than ``at`` minus the lower limit of a sample without one.
    """
    rank = limit_rank(m, n, alarm)
    if rank is None or len(residuals) < 2:
        return math.inf
    pool = np.asarray(residuals, float) * math.sqrt(len(residuals) / (len(residuals) - 1))
    generator = np.random.default_rng(SEED)
    needed = []
    for _ in range(draws):
        new, base = generator.choice(pool, m), generator.choice(pool, n)
        pairs = np.subtract.outer(new, base).ravel()
        needed.append(at - np.partition(pairs, rank)[rank])
    return float(np.quantile(needed, power))
