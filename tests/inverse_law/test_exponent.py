"""The exponent that curves share: its value, its width, what it must leave open, and the power of its rule."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from paper_figures.inverse_law.law import ALTERNATIVES, TOLERANCE, joint_exponent, lack_of_fit_power, power
from suite.batch_size.law import Updates, fit_inverse_law
from suite.claims.intervals import Interval
from suite.papers.catalogue import entries

BATCHES = tuple(2**k for k in range(11))


def family(exponent, *, seeds=10, scatter=0.01, shared=0.0, floor=200.0, batches=BATCHES, draw=0):
    """Updates by N_inf (1 + 20 / M^p) with a scatter of runs, and one of batch sizes that all seeds share."""
    chance = random.Random(draw)
    counted = []
    for batch in batches:
        middle = floor * (1 + 20 / batch**exponent) * math.exp(chance.gauss(0, shared))
        counted.append(Updates(batch, tuple(middle * math.exp(chance.gauss(0, scatter)) for _ in range(seeds))))
    return counted


@pytest.mark.parametrize("exponent", [0.7, 1.0, 1.3])
def test_finds_the_exponent_that_curves_share(exponent):
    curves = [[family(exponent, draw=1), family(exponent, floor=900, draw=2)], [family(exponent, seeds=3, draw=3)]]
    found = joint_exponent(curves)
    assert found.low <= exponent <= found.high
    assert found.high - found.low < 0.1
    assert found.n == 3


def test_what_seeds_share_widens_the_interval():
    """A sample that all seeds read moves every batch size; no number of seeds averages it away."""
    alone, shared = (joint_exponent([[family(1, shared=share, draw=4)]]) for share in (0.0, 0.05))
    assert shared.high - shared.low > 3 * (alone.high - alone.low)


def test_more_thresholds_of_one_curve_are_no_repetitions():
    one = joint_exponent([[family(1, shared=0.05, draw=5)]])
    thrice = joint_exponent([[family(1, shared=0.05, draw=5)] * 3])
    assert thrice.high - thrice.low == pytest.approx(one.high - one.low, rel=0.2)


def test_the_width_is_the_jackknifes_over_seeds() -> None:
    """Two seeds of different exponents: t of one degree times half of what their own exponents lie apart."""
    slow, fast = (family(exponent, seeds=1, draw=7) for exponent in (0.9, 1.1))
    one, other = (joint_exponent([[counted]]).mean for counted in (slow, fast))
    found = joint_exponent([[[replace(u, seen=u.seen + v.seen) for u, v in zip(slow, fast, strict=True)]]])
    assert found.high - found.mean == pytest.approx(12.7062 * abs(one - other) / 2, rel=1e-3)


def test_an_exponent_beyond_the_range_is_open_there_and_bounded_by_its_squares() -> None:
    found = joint_exponent([[family(8, draw=8)]])
    assert (found.high, found.mean) == (math.inf, pytest.approx(5))
    assert 4 < found.low < 5


@pytest.mark.parametrize(("limit", "agrees"), [(1_000, True), (20_000, False)])
def test_a_limit_is_a_bound(limit, agrees):
    """At M = 1 the law says 4,200 updates: not within 1,000 agrees with it, not within 20,000 does not."""
    curve = family(1, draw=6)
    curve[0] = Updates(1, (None,) * 10, limit)
    found = joint_exponent([[curve]])
    assert (found.low <= 1 <= found.high and found.high - found.low < 0.2) is agrees


def test_the_rule_tells_the_alternatives_apart_where_it_has_the_power():
    assert power(Interval(-1, -1.1, -0.9, 10), TOLERANCE) >= 0.8
    assert power(Interval(-1, -1.2, -0.8, 10), TOLERANCE) < 0.5
    assert power(Interval(-1, -math.inf, math.inf, 10), TOLERANCE) == 0.0
    judged = [c for c in entries("inverse_law") if c.unit.startswith("exponent of M in N") and c.empirical]
    ends = {c.printed if c.side == "range" else (-1 - c.tolerance[0], -1 + c.tolerance[0]) for c in judged}
    assert {tuple(round(end, 9) for end in pair) for pair in ends} == {(-1 - TOLERANCE, -1 + TOLERANCE)}


@pytest.mark.parametrize("scatter", [0.1, 0.25])
def test_the_power_of_lack_of_fit_is_how_often_it_is_found(scatter):
    """Against two hundred draws of what it says: curves of another exponent, eight batch sizes, ten seeds."""
    law = fit_inverse_law(family(1.0, scatter=scatter, batches=BATCHES[:8], draw=10), blocks=True)
    middle = replace(law, floor=200.0, sensitivity=4_000.0, scatter=scatter)
    seldom = 1.0
    for exponent in ALTERNATIVES:
        draws = [family(exponent, scatter=scatter, batches=BATCHES[:8], draw=100 + d) for d in range(100)]
        found = [fit_inverse_law(drawn, blocks=True).lack_of_fit or 0.0 for drawn in draws]
        seldom = min(seldom, sum(p < 0.01 for p in found) / len(found))
    assert lack_of_fit_power([middle], 0.01) == pytest.approx(seldom, abs=0.12)
    assert lack_of_fit_power([middle, middle], 0.01) > lack_of_fit_power([middle], 0.01)
    assert lack_of_fit_power([middle], 0.05) > lack_of_fit_power([middle], 0.01)
