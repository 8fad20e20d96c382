"""The power of a rule: how small a departure it would catch four times in five."""

from __future__ import annotations

import math

import pytest
from estimates import interval

from suite.claims.estimate import over_seeds as exact
from suite.claims.judge import Claim
from suite.report.verdict_details import power

NORMAL = 0.8416212335729143  # below which a standard normal number lies four times in five


def rule(kind, printed=(), **changes):
    return Claim("toy/fig9/value", "x", "here", kind, "smoke", "cpu-small", "why", printed, **changes)


def test_each_value_has_the_power_of_its_own_interval_and_tolerance():
    several = rule("within", (10.0, 20.0), tolerance=(1.0, 2.0))
    ours = interval((10.0, 20.0), (10.0, 19.02), (10.0, 20.98))
    assert power(several, ours) == pytest.approx((1.0, 2.0 + 0.98 + NORMAL / 2))
    relative = rule("bound", (10.0, 20.0), side="lower", relative=0.1)
    assert power(relative, exact((10.0, 20.0))) == (1.0, 2.0)


@pytest.mark.parametrize(
    "claim", [rule("order", order=("a", "b", "c", "d"), tolerance=(5.0,)), rule("holds", tolerance=(5.0,))]
)
def test_a_rule_without_a_printed_number_has_no_tolerance_to_exceed(claim):
    assert power(claim, exact((1.0, 1.0, 1.0))) == (0.0, 0.0, 0.0)
    assert power(claim, interval(1.0, -0.96, 2.96)) == pytest.approx((1.96 + NORMAL,))


def test_an_endless_interval_catches_nothing():
    assert power(rule("within", (10.0,), tolerance=(1.0,)), interval(10.0, -math.inf, 11.0)) == (math.inf,)
