"""Intervals: by hand, against scipy, and by how often they cover the truth.

Coverage is counted over N simulated samples with a fixed seed. If an interval of 95% covers as it says, the
count is binomial; a count further than five standard deviations from its mean has probability below 1e-6.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from suite.claims.intervals import (
    Interval,
    at_least,
    jackknife_variance,
    least,
    log_interval,
    log_slope,
    mean_interval,
    most,
    paired_difference,
    paired_ratio,
    percent_saved,
    share_above,
    wilson,
)

N = 2000
ALLOWED = 5 * math.sqrt(0.95 * 0.05 * N)


def test_student_interval_by_hand():
    """Values 1, 2, 3: mean 2, deviation 1; with two degrees of freedom t(p) = u sqrt(2 / (1 - u^2)), u = 2 p - 1."""
    found = mean_interval([1.0, 2.0, 3.0])
    assert (found.mean, found.n) == (2.0, 3)
    half = 0.95 * math.sqrt(2 / (1 - 0.95**2)) / math.sqrt(3)
    assert (2.0 - found.low, found.high - 2.0) == pytest.approx((half, half), rel=1e-9)


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_said_of_all_is_no_number_where_one_is_none(place: int):
    seen = [Interval(1, 0, 3, 2), Interval(2, 1, 2, 2)]
    assert (least(seen), most(seen)) == (Interval(1, 0, 2, 2), Interval(2, 1, 3, 2))
    share = lambda seen: share_above(seen, 0.5)
    assert share(seen) == Interval(1.0, 0.5, 1.0, 2, None)
    seen[place] = Interval(math.nan, math.nan, math.nan, 2)
    ends = ("mean", "low", "high")
    assert all(math.isnan(getattr(of(seen), end)) for of in (least, most, share) for end in ends)


def test_student_interval_against_scipy():
    values = np.random.default_rng(1).normal(size=7)
    theirs = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    ours = mean_interval(values.tolist(), 0.9)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


def test_one_value_says_nothing_of_spread():
    assert (mean_interval([3.0]).low, mean_interval([3.0]).high) == (-math.inf, math.inf)
    assert (log_interval([3.0]).low, log_interval([3.0]).high) == (0.0, math.inf)
    diverged = log_interval([2.5, 1e60])  # no float holds its upper end
    assert (diverged.low, diverged.high) == (pytest.approx(0.0), math.inf)
    with pytest.raises(ValueError, match="at least one value"):
        mean_interval([])


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_student_interval_covers_as_often_as_it_says(n: int):
    samples = np.random.default_rng(n).normal(3.0, 2.0, (N, n)).tolist()
    covered = sum(found.low <= 3.0 <= found.high for found in map(mean_interval, samples))
    assert abs(covered - 0.95 * N) < ALLOWED


def test_the_log_interval_covers_as_often_as_it_says():
    samples = np.exp(np.random.default_rng(8).normal(1.0, 0.7, (N, 4))).tolist()
    covered = sum(found.low <= math.e <= found.high for found in map(log_interval, samples))
    assert abs(covered - 0.95 * N) < ALLOWED


def test_pairing_covers_and_is_narrower_where_seeds_share_their_noise():
    generator = np.random.default_rng(9)
    shared = generator.normal(0.0, 5.0, (N, 5))
    a, b = shared + generator.normal(0, 0.1, (N, 5)), shared + 1 + generator.normal(0, 0.1, (N, 5))
    found = [paired_difference(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert abs(sum(f.low <= 1.0 <= f.high for f in found) - 0.95 * N) < ALLOWED
    apart = [mean_interval(y).high - mean_interval(y).low for y in b.tolist()]
    assert max(f.high - f.low for f in found) < np.median(apart) / 5
    less_sure = paired_difference([1.0, 2.0], [4.0, 7.0], 0.9)
    assert (less_sure.mean, less_sure.n) == (4.0, 2)
    assert less_sure.high - less_sure.low < paired_difference([1.0, 2.0], [4.0, 7.0]).high


def test_what_a_logarithm_saves_in_per_cent():
    assert percent_saved(0.0) == 0.0
    assert [percent_saved(-math.log(2)), percent_saved(math.log(2))] == pytest.approx([-100, 50])


def test_ratios_are_geometric():
    found = paired_ratio([1.0, 2.0, 4.0], [2.0, 4.0, 8.0])
    assert (found.mean, found.low, found.high) == pytest.approx((2.0, 2.0, 2.0), rel=1e-12)
    assert (found.n, found.freedom) == (3, 2)
    with pytest.raises(ValueError, match="positive values"):
        log_interval([1.0, 0.0])
    with pytest.raises(ValueError, match="zip"):
        paired_ratio([1.0], [1.0, 2.0])


def test_wilson_by_its_formula():
    """Of 3 in 10 at z = 1.96: (0.3 + z^2/20 +- z sqrt(0.021 + z^2/400)) / (1 + z^2/10)."""
    found = wilson(3, 10)
    assert (found.mean, found.n) == (0.3, 10)
    assert (found.low, found.high) == pytest.approx((0.10779, 0.60322), abs=1e-5)
    none, every = wilson(0, 10), wilson(10, 10)
    assert (none.mean, none.low, every.high, wilson(1, 1).n) == (0.0, 0.0, 1.0, 1)


@pytest.mark.parametrize(("successes", "trials"), [(1, 0), (-1, 3), (4, 3)])
def test_wilson_refuses_what_is_no_proportion(successes: int, trials: int):
    with pytest.raises(ValueError, match="not a proportion"):
        wilson(successes, trials)


def test_as_many_images_as_a_level_asks_for_reach_it():
    """Levels of accuracy as a share and in per cent, against the share of wrong images among 10,000."""
    for wrong in range(10_000):
        level = (10_000 - wrong) / 10_000
        assert at_least(1 - wrong / 10_000, level)
        assert at_least(100 * (1 - wrong / 10_000), 100 * level)
        assert not at_least(1 - (wrong + 1) / 10_000, level)


def test_the_interval_of_a_slope_by_hand():
    """Of log y = 0, 0, 3 over log x = -1, 0, 1: slope 3/2, residuals 1/2, -1, 1/2, one degree of freedom."""
    found = log_slope(np.exp([-1.0, 0.0, 1.0]), np.exp([0.0, 0.0, 3.0]))
    half = 12.7062 * math.sqrt(1.5 / 1 / 2)
    assert (found.mean, found.low, found.high) == pytest.approx((1.5, 1.5 - half, 1.5 + half), rel=1e-4)
    assert (found.n, found.freedom) == (3, 1)


def test_the_jackknife_by_hand_of_each_statistic_apart():
    """Values 1, 2, 3 scatter by 2 about their mean; two thirds of it. Ten times the values, a hundred times that."""
    parts = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    assert jackknife_variance(parts) == pytest.approx([4 / 3, 400 / 3])
