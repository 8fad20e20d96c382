"""Measured quantities and printed rules at their edges: what is one, what fits, and what a file may leave out."""

from __future__ import annotations

import math

import pytest
from estimates import interval

from suite.claims.board import apart, board, lines
from suite.claims.estimate import (
    REDUCED,
    WHOLE,
    Estimate,
    exact,
    over_seeds,
)
from suite.claims.intervals import Interval, paired_difference, percent_saved, wilson
from suite.claims.judge import Claim, ClaimError, Verdict, judge, load


def claim(rule="within", printed=(10.0,), **changes):
    return Claim(
        "toy/table1/it", "it is ten", "Table 1", rule, "reduced", "cpu-small", "rounding", printed, **changes
    )


def decided(made, *spans):
    values, low, high = zip(*((a, a, b) for a, b in spans), strict=True)
    return judge(made, interval(values, low, high), "reduced").verdict


def test_a_quantity_over_seeds_has_the_fewest_of_them():
    one, other = Interval(1.0, 0.0, 2.0, 5), Interval(3.0, 2.0, 4.0, 3)
    assert over_seeds(one) == Estimate((1.0,), (0.0,), (2.0,), 5)
    assert over_seeds([one, other], "ab", "so") == Estimate((1.0, 3.0), (0.0, 2.0), (2.0, 4.0), 3, ("a", "b"), "so")
    assert over_seeds(other, proxy=True).proxy


@pytest.mark.parametrize(
    ("values", "low", "high", "finite", "decidable"),
    [
        ((1.0, 2.0), (0.0, 1.0), (2.0, 3.0), True, True),
        ((1.0, 2.0), (-math.inf, 1.0), (2.0, math.inf), False, True),
        ((1.0, math.nan), (0.0, 1.0), (2.0, 3.0), False, False),
        ((1.0, math.inf), (0.0, 1.0), (2.0, math.inf), False, False),
        ((1.0, 2.0), (0.0, math.nan), (2.0, 3.0), False, False),
        ((1.0, 2.0), (0.0, 1.0), (math.nan, 3.0), False, False),
    ],
)
def test_an_open_interval_can_be_judged_and_what_is_no_number_cannot(values, low, high, finite, decidable):
    ours = Estimate(values, low, high)
    assert (ours.finite, ours.decidable) == (finite, decidable)


# --- claims


@pytest.mark.parametrize(
    ("named", "changes"),
    [
        ("printed", {"printed": (1.0, math.nan)}),
        ("printed", {"printed": (math.inf, 1.0)}),
        ("printed", {"rule": "bound", "side": "range", "printed": (1.0, 2.0, 3.0)}),
        ("printed", {"rule": "bound", "side": "lower", "printed": ()}),
        ("tolerance", {"printed": (1.0, 2.0), "tolerance": (1.0, -1.0)}),
        ("tolerance", {"rule": "bound", "side": "lower", "printed": (1.0, 2.0), "tolerance": (1.0, 2.0)}),
        ("tolerance", {"tolerance": ()}),
        ("relative", {"rule": "holds", "relative": 0.1}),
        ("relative", {"rule": "order", "order": ("a", "b"), "relative": 0.0}),
        ("side", {"rule": "bound", "side": "left"}),
        ("order", {"rule": "order"}),
    ],
)
def test_a_rule_that_means_nothing_is_refused(named, changes):
    with pytest.raises(ClaimError, match=f"toy/table1/it: {named} = "):
        claim(**changes)


def test_each_value_is_held_against_its_own_printed_bound():
    bounds = claim("bound", (10.0, 20.0), side="lower")
    assert decided(bounds, (11, 12), (21, 22)) == "reproduced"
    assert decided(bounds, (11, 12), (15, 16)) == "not reproduced"
    upper = claim("bound", (10.0, 20.0), side="upper", relative=0.1)
    assert decided(upper, (10, 11), (20, 22)) == "reproduced"
    assert decided(upper, (10, 11), (20, 22.1)) == "inconclusive"


def test_a_range_is_widened_by_the_tolerance_of_either_end():
    relative = claim("bound", (10.0, 20.0), side="range", relative=0.1)
    assert decided(relative, (9, 22)) == "reproduced"
    assert decided(relative, (8.9, 22)) == decided(relative, (9, 22.1)) == "inconclusive"
    assert decided(claim("bound", (10.0, 20.0), side="range", tolerance=(-1.0,)), (10.5, 19)) == "inconclusive"


FILE = """
[fig1]
where = "Fig. 1"
needs = "gpu"
because = "so"
rule = "bound"
side = "lower"
relative = 0.1
[fig1.least]
says = "at least"
printed = 1
[fig1.about]
says = "about"
printed = 1
rule = "within"
[fig1.rising]
says = "rising"
rule = "order"
order = ["a", "b"]
[fig1.always]
says = "always"
printed = 1
property = "it cannot be false"
[fig1.shown]
says = "shown"
printed = 1
empirical = false
[fig1.free]
says = "no run"
printed = 1
needs = "nothing"
"""


def test_defaults_of_an_artifact_serve_the_claims_that_can_use_them(tmp_path):
    path = tmp_path / "toy.toml"
    path.write_text(FILE)
    found = {each.quantity: each for each in load(path)}
    assert [(c.rule, c.side, c.relative) for c in found.values()][:3] == [
        ("bound", "lower", 0.1), ("within", "", 0.1), ("order", "", None)
    ]  # fmt: skip
    assert [c.empirical for c in found.values()] == [True, True, True, False, False, False]
    assert (found["least"].profile, found["rising"].order) == ("smoke", ("a", "b"))


# --- boards and intervals


def verdict(said, rests_on="", measured=None, **more):
    return Verdict(claim("holds", ()), said, "", measured or exact(1.0), "smoke", rests_on=rests_on, **more)


def test_what_was_not_registered_first_is_counted_by_kind_in_alphabetical_order():
    orders = ("undated", "late", "registered", "amended", "late", "")
    counted = board([verdict("reproduced", REDUCED, order=order) for order in orders])
    assert apart(counted, REDUCED) == " (1 amended, 2 late, 1 undated)"
    assert apart(counted, WHOLE) == apart(counted, "nothing measured") == ""
    assert any(line.endswith("6 reproduced (1 amended, 2 late, 1 undated)") for line in lines(counted))


def test_a_proportion_may_be_none_or_all():
    assert (wilson(0, 10).mean, wilson(0, 10).low, wilson(10, 10).high) == (0.0, 0.0, 1.0)
    assert wilson(0, 10, 0.5).high < wilson(0, 10).high
    assert wilson(1, 1).n == 1


def test_pairs_are_subtracted_from_their_partner():
    found = paired_difference([1.0, 2.0], [4.0, 7.0], 0.9)
    assert (found.mean, found.n) == (4.0, 2)
    assert found.high - found.low < paired_difference([1.0, 2.0], [4.0, 7.0]).high


def test_what_a_logarithm_saves_in_per_cent():
    assert percent_saved(0.0) == 0.0
    assert percent_saved(math.log(2)) == pytest.approx(50)
    assert percent_saved(-math.log(2)) == pytest.approx(-100)
