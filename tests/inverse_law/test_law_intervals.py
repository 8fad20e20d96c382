"""Exponents, misfits and their intervals against fits written apart, with scipy's general ones, by the docstrings."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fabricated_frames import measured
from law_worlds import searches
from scipy import optimize, stats

from paper_figures.inverse_law import equations, fig1, misfits, settings
from paper_figures.inverse_law.law import (
    ALTERNATIVES,
    TOLERANCE,
    crossings,
    families,
    joint_exponent,
    law_fit,
    power,
    reached,
)
from paper_figures.inverse_law.law import searches as searched
from paper_figures.inverse_law.misfits import largest_misfit
from paper_figures.inverse_law.settings import BY_NAME, LIMIT
from suite.batch_size.law import FitError, Updates, fit_inverse_law
from suite.claims.intervals import Interval
from suite.papers.artifact import Missing
from suite.papers.catalogue import entries, printed_value

SIZES = (1, 2, 4, 8, 16, 32, 64)


def counted(
    p: float, seeds: int, scatter: float, draw: int, *, shared: float = 0.0, own: float = 0.0
) -> list[Updates]:
    """N_inf (1 + 20 / M^p), late by a seed's own factor at every size, by one of each run and one that seeds share.

    A seed's exponent is off by ``own`` times a number of its own.
    """
    chance = random.Random(draw)
    late = [chance.gauss(0, 0.1) for _ in range(seeds)]
    exponents = [p + own * chance.gauss(0, 1) for _ in range(seeds)]
    found = []
    for size in SIZES:
        middle = 200 * math.exp(chance.gauss(0, shared))
        runs = zip(late, exponents, strict=True)
        seen = tuple(middle * (1 + 20 / size**e) * math.exp(each + chance.gauss(0, scatter)) for each, e in runs)
        found.append(Updates(size, seen, 20_000.0))
    return found


Family = tuple[Any, Any]
"""Batch sizes [B] and logarithms of updates [B, S]."""


def family(updates: Sequence[Updates]) -> Family:
    return np.array([u.batch for u in updates], float), np.log(np.array([u.seen for u in updates], float))


def free_fit(curves: Sequence[Sequence[Family]], fixed: float | None = None) -> tuple[float, float, float]:
    """The common exponent of means over seeds, its standard error, and half the sum of squares: of ``curve_fit``."""
    every = [each for curve in curves for each in curve]
    y = np.concatenate([logs.mean(1) for _, logs in every])

    def model(_: Any, *theta: float) -> Any:
        p, constants = (fixed, theta) if fixed else (theta[0], theta[1:])
        pairs = zip(every, constants[::2], constants[1::2], strict=True)
        return np.concatenate([np.log(np.maximum(f + math.exp(a) / b**p, 1e-9)) for (b, _), f, a in pairs])

    start = [] if fixed else [1.0]
    for _, logs in every:
        first, *_, last = np.exp(logs.mean(1))
        start += [0.9 * last, math.log(first - 0.9 * last)]
    best, covariance = optimize.curve_fit(model, np.arange(len(y)), y, start, xtol=1e-12, ftol=1e-12, maxfev=20_000)
    half = float(((model(None, *best) - y) ** 2).sum() / 2)
    return float(best[0]), math.sqrt(covariance[0, 0]), half


def by_seeds(curves: Sequence[Sequence[Family]]) -> float:
    """Half the width of Student's interval on the jackknife over seeds, by Welch and Satterthwaite."""
    variances = {}
    for seeds in {curve[0][1].shape[1] for curve in curves}:
        parts = []
        for j in range(seeds):
            without = lambda logs, j=j, seeds=seeds: np.delete(logs, j, 1) if logs.shape[1] == seeds else logs
            parts.append(free_fit([[(batch, without(logs)) for batch, logs in curve] for curve in curves])[0])
        variances[seeds] = (seeds - 1) / seeds * sum((part - sum(parts) / seeds) ** 2 for part in parts)
    total = sum(variances.values())
    degrees = total**2 / sum(v**2 / (n - 1) for n, v in variances.items())
    return float(stats.t.ppf(0.975, degrees)) * math.sqrt(total)


def by_points(curves: Sequence[Sequence[Family]]) -> float:
    """Half the width from the points about their curves, all thresholds of a curve taken for one."""
    spare = sum(len(curve[0][0]) - 2 for curve in curves) - 1
    return float(stats.t.ppf(0.975, spare)) * free_fit(curves)[1] * math.sqrt(max(map(len, curves)))


CURVES = {
    "seeds differ": (
        [counted(1.0, 4, 0.002, 1, own=0.2), counted(1.0, 4, 0.002, 2, own=0.2)],
        [counted(1.05, 3, 0.002, 3, own=0.2)],
    ),
    "sizes differ": (
        [counted(0.9, 5, 0.002, 4, shared=0.03), counted(0.9, 5, 0.002, 5, shared=0.03)],
        [counted(1.0, 3, 0.002, 6, shared=0.03)],
    ),
}


@pytest.mark.parametrize(("name", "wider"), [("seeds differ", by_seeds), ("sizes differ", by_points)])
def test_an_exponent_has_the_wider_of_two_intervals(name: str, wider: Any) -> None:
    seen = [[family(threshold) for threshold in curve] for curve in CURVES[name]]
    value, half = free_fit(seen)[0], wider(seen)
    assert half == max(by_seeds(seen), by_points(seen))
    found = joint_exponent(CURVES[name])
    assert (found.mean, found.low, found.high) == pytest.approx((value, value - half, value + half), rel=2e-4)
    assert found.n == 3


def test_no_exponent_without_four_sizes_of_every_curve() -> None:
    curve = counted(1.0, 3, 0.01, 7)
    for curves in ([], [[]], [[curve], []], [[curve], [curve[:3]]]):
        with pytest.raises(FitError, match="4 batch sizes"):
            joint_exponent(curves)
    assert joint_exponent([[curve[:4]]]).high < math.inf


def test_one_seed_leaves_an_exponent_open() -> None:
    found = joint_exponent([[counted(1.0, 1, 0.01, 7)], [counted(1.0, 3, 0.01, 8)]])
    assert (found.low, found.high, found.n) == (-math.inf, math.inf, 1)


@pytest.mark.parametrize("end", [5.0, 0.05])
def test_at_an_end_of_the_range_the_squares_bound_the_other_side(end: float) -> None:
    """Of two thresholds, so that the F bound counts twice; updates that fall with log M have an exponent of none."""
    if end > 1:
        curve = [counted(9.0, 3, 0.02, draw) for draw in (9, 10)]
    else:
        late = lambda draw: [math.exp(random.Random(draw).gauss(0, 0.02)) for _ in range(3)]
        curve = [
            [Updates(m, tuple((900 - 130 * math.log(m)) * e for e in late(m + at))) for m in SIZES] for at in (0, 99)
        ]
    found, seen = joint_exponent([curve]), [[family(threshold) for threshold in curve]]
    points = 2 * len(SIZES)
    bound = free_fit(seen, fixed=end)[2] * (1 + 2 * stats.f.ppf(0.95, 1, points - 5) / (points - 5))
    other, beyond = (found.low, found.high) if end > 1 else (found.high, found.low)
    assert (found.mean, abs(beyond)) == (pytest.approx(end), math.inf)
    assert free_fit(seen, fixed=other)[2] == pytest.approx(bound, rel=5e-3)


@pytest.mark.parametrize(("limit", "agrees"), [(1_000, True), (20_000, False)])
def test_a_limit_is_a_bound(limit: float, agrees: bool) -> None:
    """At M = 1 the law says 4,200 updates: not within 1,000 agrees with it, not within 20,000 does not."""
    curve = counted(1.0, 10, 0.01, 6)
    curve[0] = Updates(1, (None,) * 10, limit)
    found = joint_exponent([[curve]])
    assert (found.low <= 1 <= found.high and found.high - found.low < 0.2) is agrees


def test_every_claim_on_an_exponent_has_the_tolerance_whose_power_is_told() -> None:
    judged = [c for c in entries("inverse_law") if c.unit.startswith("exponent of M in N") and c.empirical]
    ends = {c.printed if c.side == "range" else (-1 - c.tolerance[0], -1 + c.tolerance[0]) for c in judged}
    assert {tuple(round(end, 9) for end in pair) for pair in ends} == {(-1 - TOLERANCE, -1 + TOLERANCE)}


def test_the_power_of_the_rule_by_hand() -> None:
    """An interval of +-0.1 around 0.7 or 1.3 lies outside 1 +- 0.15 with z = 0.05 / (0.1 / 1.96)."""
    assert power(Interval(-1, -1.1, -0.9, 3), 0.15) == pytest.approx(stats.norm.cdf(0.98))
    assert [power(Interval(-1, -1, -1, 3), tolerance) for tolerance in (0.15, 0.4)] == [1.0, 0.0]
    assert power(Interval(-1, -math.inf, math.inf, 10), TOLERANCE) == 0.0


def test_the_power_of_lack_of_fit_is_that_of_a_noncentral_f() -> None:
    laws = [fit_inverse_law(counted(1.0, seeds, 0.5, seeds), blocks=True) for seeds in (4, 6)]
    missed = []
    for exponent in ALTERNATIVES:
        missed.append(1.0)
        for law, seeds in zip(laws, (4, 6), strict=True):
            logs = np.log(law.floor + law.sensitivity / np.array(SIZES) ** exponent)
            fit, _ = optimize.curve_fit(lambda m, f, a: np.log(f + a / m), SIZES, logs, [law.floor, law.sensitivity])
            squares = float(((logs - np.log(fit[0] + fit[1] / np.array(SIZES))) ** 2).sum())
            spare, repeats = len(SIZES) - 2, (len(SIZES) - 1) * (seeds - 1)
            critical = stats.f.ppf(0.95, spare, repeats)
            missed[-1] *= stats.ncf.cdf(critical, spare, repeats, seeds * squares / law.scatter**2)
    assert fig1.lack_of_fit_power(laws, 0.05) == pytest.approx(1 - max(missed), abs=1e-6)
    assert 0.2 < max(missed) < 0.8


# ---------------------------------------------------------------- which counts a law is fitted to

FAST = BY_NAME["mnist_medium-lr0p05"]


def censored_at(*sizes: int) -> Any:
    """Searches that reach two of three thresholds at these sizes within their limit, and all of them elsewhere."""
    late = LIMIT / 1.7**1.5
    frame = searches(lambda spec, group: late if spec.settings["batch"] in sizes else 90.0, [f"{FAST.name}/"])
    return frame.needed(group for group in frame.groups if not group.endswith("/lower"))


def test_a_threshold_counts_that_the_larger_half_of_the_sizes_reached() -> None:
    """Of eleven sizes the larger half begins at M = 32; of which two must have arrived at the lowest one used."""
    assert FAST.thresholds("paper") == tuple(round(math.log(10) / 2**h, 4) for h in settings.PAPER_HALVINGS)
    three = list(FAST.thresholds("reduced"))
    assert list(families(censored_at(1, 16), FAST)) == three
    for size in (32, 1024):
        assert list(families(censored_at(size), FAST)) == three[:2]
    lowest = lambda *but: reached(censored_at(*(m for m in FAST.powers if m not in but)), FAST)
    assert sum(u.censored == 0 for u in lowest(4, 512)) == 2
    assert not any(u.censored for u in lowest(4))


def test_a_threshold_or_a_loss_that_was_not_searched_is_missing() -> None:
    runs = searched(censored_at(), censored_at().groups)
    assert len(crossings(runs, FAST.threshold(1))) == len(FAST.powers)
    for threshold, monitor in ((FAST.threshold(6), "training"), (FAST.threshold(1), "validated")):
        with pytest.raises(Missing, match=f"{threshold} of the {monitor} loss at batch size 1$"):
            crossings(runs, threshold, monitor)


def test_seeds_are_blocks_where_every_size_has_them_all() -> None:
    same = counted(1.0, 3, 0.02, 11)
    fewer = [replace(u, seen=u.seen[:2]) if u.batch == 4 else u for u in same]
    apart, together = fit_inverse_law(same), fit_inverse_law(same, blocks=True)
    assert law_fit(same) == together
    assert together.floor_interval() != apart.floor_interval()
    assert law_fit(fewer) == fit_inverse_law(fewer)
    alone = [replace(u, seen=u.seen[:1]) for u in same]
    assert law_fit(alone) == fit_inverse_law(alone)


NAMES = [f"{data}_medium-lr0p05" for data in ("mnist", "cifar10", "cifar100")]
LAWS = {"mnist": (100.0, 1_000.0), "cifar10": (200.0, 4_000.0), "cifar100": (900.0, 9_000.0)}


def test_steps_between_curves_have_the_ends_of_both_intervals() -> None:
    def law(spec: Any, group: str) -> float:
        floor, alpha = LAWS[spec.settings["data"]["name"]]
        return floor + alpha / spec.settings["batch"]

    frame = searches(law, NAMES, 0.03)
    fits = [law_fit(reached(frame, BY_NAME[name])) for name in NAMES]
    alphas, floors = [fit.sensitivity_interval() for fit in fits], [fit.floor_interval() for fit in fits]
    onsets = [
        Interval(fit.sensitivity / fit.floor, a.low / f.high, a.high / f.low, a.n)
        for fit, a, f in zip(fits, alphas, floors, strict=True)
    ]
    for name, ends in (("alpha-grows", alphas), ("floor-onset", onsets)):
        found = measured(f"inverse_law/fig1b/{name}", frame)
        steps = pairwise(ends)
        assert found.spans == tuple(
            pytest.approx((b.mean - a.mean, b.low - a.high, b.high - a.low)) for a, b in steps
        )
        assert found.n == 10  # the seeds of the curve that has most
    unknown = SimpleNamespace(
        floor=-1.0, sensitivity=9.0, floor_interval=lambda: Interval(-1, -3, 1, 4),
        sensitivity_interval=lambda: Interval(9, 8, 10, 4),
    )  # fmt: skip
    assert fig1.onset(unknown) == Interval(-9, -math.inf, math.inf, 4)  # type: ignore[arg-type]


def test_lacks_of_fit_count_by_their_number() -> None:
    """Bonferroni: the least p-value times the number of laws, at most 1; open towards nought without the power."""
    name, rows = "inverse_law/fig1b/no-lack-of-fit", ["mnist_small-lr0p01", FAST.name]
    for power_of_m, scatter in ((1.0, 0.02), (0.93, 0.02), (1.0, 0.9)):
        law = lambda spec, group, p=power_of_m: (90 if "small" in group else 70) + 9_000 / spec.settings["batch"] ** p
        frame = searches(law, rows, scatter)
        tested = fig1.tested_laws(frame)
        assert len(tested) == 3
        value = min(1.0, 3 * min(tested.values()))
        told = fig1.lack_of_fit_power(list(tested), printed_value(name) / 3) >= 0.8
        assert fig1.fit_power(tested) == fig1.lack_of_fit_power(list(tested), printed_value(name) / 3)
        found = measured(name, frame)
        assert (found.spans, found.n) == ((pytest.approx((value, value if told else 0.0, value)),), 3)
        assert told is (scatter < 0.5)


# ---------------------------------------------------------------- misfits


def misfits_apart(curve: Sequence[Updates]) -> tuple[Any, Any, int]:
    """Misfits of logarithms [P], their errors [P] and degrees of freedom."""
    batch, logs = family(curve)

    def off(means: Any) -> Any:
        start = [math.exp(means.min()), math.exp(means.max()) * batch[means.argmax()]]
        fit, _ = optimize.curve_fit(lambda m, f, a: np.log(f + a / m), batch, means, start, xtol=1e-12, ftol=1e-12)
        return means - np.log(fit[0] + fit[1] / batch)

    seeds, sizes = logs.shape[1], len(batch)
    parts = [off(np.delete(logs, j, 1).mean(1)) for j in range(seeds)]
    squared = (seeds - 1) ** 2 / seeds * np.var(parts, axis=0, ddof=1)
    return off(logs.mean(1)), np.sqrt(np.maximum(squared, squared.sum() / (sizes - 2))), (seeds - 1) * (sizes - 2)


def test_the_largest_misfit_has_an_upper_end_for_all_and_a_lower_for_some() -> None:
    """Two thresholds whose points scatter differently; of one a size did not arrive with every seed."""
    curves = [counted(0.7, 4, 0.03, 12), counted(0.8, 4, 0.06, 13)]
    curves[1][0] = replace(curves[1][0], seen=(None, *curves[1][0].seen[1:]))
    each = [misfits_apart(curves[0]), misfits_apart(curves[1][1:])]
    points = len(SIZES) * 2 - 1
    value = max(np.abs(off).max() for off, _, _ in each)
    high = max((np.abs(off) + stats.t.ppf(0.975, free) * error).max() for off, error, free in each)
    low = max((np.abs(off) - stats.t.ppf(1 - 0.025 / points, free) * error).max() for off, error, free in each)
    found = largest_misfit(curves)
    assert found is not None
    assert (found.mean, found.low, found.high) == pytest.approx(
        tuple(map(math.expm1, (value, max(low, 0.0), high))), rel=1e-4
    )
    assert (found.n, low > 0) == (4, True)
    with pytest.raises(Missing, match="4 batch sizes"):
        largest_misfit([curves[0][:3]])
    single = misfits.Misfits(np.array([0.1]), np.array([0.01]), degrees=1, seeds=2)
    assert misfits.largest([single]).high == pytest.approx(math.expm1(0.1 + stats.t.ppf(0.975, 1) * 0.01))


# ---------------------------------------------------------------- the cost of an all-reduce


def test_an_all_reduce_grows_with_the_steps_that_have_a_latency() -> None:
    """Halving and doubling among 2 to 256 learners at 0, 1 and 10 microseconds a message: slopes of log on log."""
    slopes = []
    for latency in (0.0, 1e-6, 1e-5):
        seconds = [2 * k * latency + 2 * (2**k - 1) / 2**k * 4 * 671_802 / 1e9 for k in range(1, 9)]
        slopes.append(stats.linregress(np.log([2**k for k in range(1, 9)]), np.log(seconds)).slope)
    found = measured("inverse_law/eq3/allreduce-constant", searches(lambda *_: 1.0, ["mnist_small"]))
    assert found.spans == (pytest.approx((slopes[1], min(slopes), max(slopes))),)
    assert equations.allreduce_seconds(1) == 0
