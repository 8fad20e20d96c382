"""Numbers as a reader sees them."""

from __future__ import annotations

import math

import pytest
from estimates import interval, point

from suite.claims.estimate import over_seeds as exact
from suite.claims.intervals import over_ends
from suite.claims.judge import Claim
from suite.report.numerals import alike, compared, number, ours, printed, tolerance


def claim(rule: str = "within", **entries) -> Claim:
    if rule == "within":
        entries.setdefault("printed", (1.0,))
    return Claim("p/a/c", says="s", where="w", rule=rule, profile="smoke", needs="nothing", because="b", **entries)


@pytest.mark.parametrize(
    ("value", "half_width", "text"),
    [
        (2.6789, 0.31, "2.68"),
        (2.6789, 0.031, "2.679"),
        (123_456.0, 2_000, "123,500"),
        (-0.004, 0.01, "−0.004"),
        (50_000.0, 0.0, "50,000"),
        (1 / 3, 0.0, "0.3333"),
        (3.2e-7, 0.0, "3.2e-07"),
        (0.0, 1e-15, "0"),
        (math.nan, 0.0, "no number"),
        (math.inf, 0.0, "∞"),
    ],
)
def test_digits_follow_the_interval(value, half_width, text):
    assert number(value, half_width) == text


def test_ours_is_read_as_the_rule_reads_it():
    assert ours(interval(25.1, 23.94, 26.3), claim(unit="%")) == ["25.1 [23.9, 26.3]%"]
    assert ours(exact(over_ends(1.4, (1.1, 2.0))), claim(unit="times")) == ["1.40, from 1.10 to 2.00 times"]
    assert ours(exact([16, 32]), claim(unit="learners")) == ["16 learners", "32 learners"]
    assert ours(exact([2000, 0.3]), claim(unit="images/s, s")) == ["2000 images/s", "0.3 s"]
    assert ours(interval(0.7, 0.0004, 0.8), claim()) == ["0.70 [0.0004, 0.80]"]
    assert ours(interval(0.7, -0.0004, 0.8), claim()) == ["0.70 [−0.0004, 0.80]"]
    assert ours(interval(0.7, 0.0, 0.8), claim()) == ["0.70 [0.00, 0.80]"]
    assert ours(exact([1, 0]), claim(rule="holds")) == ["holds", "does not hold"]
    share = point(0.9, spread=0.05)
    assert ours(share, claim(rule="holds")) == ["holds in 90.0 [85.0, 95.0]% of cases"]
    assert ours(share, claim(rule="holds", unit="share of tests")) == ["holds in 90.0 [85.0, 95.0]% of tests"]
    steps = claim(rule="order", order=("slow", "fast"), unit="s")
    assert ours(exact(0.5), steps) == ["fast minus slow: 0.5 s"]
    apart = claim(rule="order", order=("slow", "fast", "faster"), pairs=(("slow", "fast"), ("slow", "faster")))
    assert ours(exact([0.5, 0.7]), apart) == ["fast minus slow: 0.5", "faster minus slow: 0.7"]
    registered = claim(rule="order", order=("four", "many"), unit="flop/s", unit_shown="log of the ratio of rates")
    assert ours(exact(math.log(2)), registered) == ["four: 50% less throughput than many"]
    bounded = claim(rule="bound", printed=(0.0,), side="above", unit="log of the ratio of seconds")
    assert ours(exact(math.log(2)), bounded) == ["100% more time"]
    assert compared(bounded) == ["> 0% more time"]
    assert ours(interval(1.0, -math.inf, math.inf), claim()) == ["1, without bounds"]
    assert ours(interval(-4.95059, -math.inf, -3.4897), claim()) == ["−4.95 [−∞, −3.49]"]


@pytest.mark.parametrize(
    ("entries", "text", "allowed"),
    [
        ({"printed": (26.79,), "unit": "%", "tolerance": (5.0,)}, ["26.79%"], "± 5 points"),
        ({"printed": (1.5, 2.5), "unit": "s", "tolerance": (0.1, 0.2)}, ["1.5 s", "2.5 s"], "± 0.1, 0.2 s"),
        ({"printed": (0.123456789,), "relative": 0.02}, ["0.123456789"], "± 2% of the printed value"),
        ({"printed": (5, 6), "unit": "x, s", "tolerance": (1.0, 2.0)}, ["5 x", "6 s"], "± 1 x, 2 s"),
        ({"rule": "bound", "side": "above", "printed": (3.0,)}, ["> 3"], "none"),
        ({"rule": "bound", "side": "range", "printed": (3.0, 4.0), "unit": "x"}, ["3 to 4 x"], "none"),
        ({"rule": "order", "order": ("a", "b", "c")}, ["a < b < c"], "every step above 0"),
        ({"rule": "holds"}, ["holds"], "none"),
        ({"rule": "holds", "printed": (0.95,)}, ["holds in 95% of cases"], "none"),
    ],
)
def test_the_printed_side_and_the_tolerance(entries, text, allowed):
    assert printed(claim(**entries)) == text
    assert tolerance(claim(**entries)) == allowed


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ("ours: -0.242013 [0.1, 2]", "ours: -0.242012 [0.1, 2]", True),
        ("1.724,0.001234", "1.725,0.001235", True),
        ("1.724", "1.726", False),
        ("117 reproduced", "118 reproduced", False),
        ("1.724 s", "1.724 ms", False),
        ("1.724", "1.724 and 2", False),
    ],
)
def test_texts_are_alike_but_for_one_in_the_last_digit(before, now, same):
    assert alike(before, now) is same
