"""The judge: every rule on both sides of its bound, every verdict, and what may never decide."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from estimates import interval, point
from hypothesis import given
from hypothesis import strategies as st

from suite.claims.estimate import EXACT, MODELLED, STAND_IN, WHOLE, Estimate, over_seeds
from suite.claims.estimate import over_seeds as exact
from suite.claims.intervals import Interval
from suite.claims.judge import PROFILES, Claim, ClaimError, judge, load
from suite.report.numerals import printed

HALF = st.integers(-8, 8).map(lambda n: n / 2)


def claim(**changes: Any) -> Claim:
    plain: dict[str, Any] = {
        "id": "toy/table1/it",
        "says": "it is ten",
        "where": "Table 1",
        "rule": "within",
        "profile": "reduced",
        "needs": "cpu-small",
        "because": "rounding",
        "printed": (10.0,),
    }
    return Claim(**plain | changes)


def spans(*ends: tuple[float, float], proxy: bool = False) -> Estimate:
    return interval([(a + b) / 2 for a, b in ends], [a for a, _ in ends], [b for _, b in ends], proxy=proxy)


def verdict(made: Claim, ours: Estimate) -> str:
    return judge(made, ours, "reduced").verdict


YES, NO, MAYBE = "reproduced", "not reproduced", "inconclusive"

WITHIN = claim(tolerance=(1.0,))
SEVERAL = claim(printed=(10.0, 20.0), tolerance=(1.0, 2.0))
RELATIVE = claim(printed=(10.0, -100.0), relative=0.1)
LOWER, ABOVE, UPPER, BELOW = (claim(rule="bound", side=s) for s in ("lower", "above", "upper", "below"))
BOTH = claim(rule="bound", side="lower", printed=(9.0, 9.0))
RANGE = claim(rule="bound", side="range", printed=(10.0, 20.0))
WIDENED = claim(rule="bound", side="range", printed=(10.0, 20.0), tolerance=(1.0,))
NARROWED = claim(rule="bound", side="range", printed=(10.0, 20.0), tolerance=(-1.0,))
EITHER_END = claim(rule="bound", side="range", printed=(10.0, 20.0), relative=0.1)
EACH_ITS_OWN = claim(rule="bound", side="lower", printed=(10.0, 20.0))
EACH_ITS_SHARE = claim(rule="bound", side="upper", printed=(10.0, 20.0), relative=0.1)
LOOSE = claim(rule="bound", side="lower", tolerance=(1.0,))
ORDER = claim(rule="order", order=("slow", "faster", "fastest"), printed=())
STEPS = claim(rule="order", order=("slow", "fast"), printed=(), tolerance=(2.0,))
HOLDS = claim(rule="holds", printed=())
MOSTLY = claim(rule="holds", printed=(0.75,))

DECISIONS = [
    (WITHIN, [(9, 11)], YES),  # the ends belong to the tolerance
    (WITHIN, [(8.9, 11)], MAYBE),
    (WITHIN, [(11, 12)], MAYBE),  # touches
    (WITHIN, [(11.1, 12)], NO),
    (WITHIN, [(0, 8.9)], NO),
    (WITHIN, [(0, 20)], MAYBE),
    (SEVERAL, [(9, 11), (18, 22)], YES),
    (SEVERAL, [(9, 11), (17, 22)], MAYBE),
    (SEVERAL, [(9, 12), (30, 31)], NO),  # one outside decides, whatever straddles
    (RELATIVE, [(9, 11), (-110, -90)], YES),
    (RELATIVE, [(9, 11), (-90, -80)], MAYBE),
    (RELATIVE, [(9, 11), (-89, -80)], NO),
    (LOWER, [(10, 12)], YES),
    (ABOVE, [(10, 12)], MAYBE),
    (ABOVE, [(10.1, 12)], YES),
    (LOWER, [(9, 10)], MAYBE),
    (LOWER, [(10, 10)], YES),
    (ABOVE, [(10, 10)], NO),
    (ABOVE, [(9, 10)], NO),
    (LOWER, [(8, 9.9)], NO),
    (LOWER, [(11, 12), (9, 9.5)], NO),  # one printed bound holds for every value
    (UPPER, [(8, 10)], YES),
    (BELOW, [(8, 10)], MAYBE),
    (BELOW, [(8, 9.9)], YES),
    (UPPER, [(10, 10)], YES),
    (BELOW, [(10, 10)], NO),
    (UPPER, [(10, 11)], MAYBE),
    (BELOW, [(10, 11)], NO),
    (UPPER, [(10.1, 11)], NO),
    (LOOSE, [(9, 9.5)], YES),
    (LOOSE, [(8.5, 9.5)], MAYBE),
    (LOOSE, [(8, 8.9)], NO),
    (RANGE, [(10, 20)], YES),
    (RANGE, [(9.9, 20)], MAYBE),
    (RANGE, [(20.1, 21)], NO),
    (RANGE, [(12, 13), (14, 15), (16, 17)], YES),
    (WIDENED, [(9, 21)], YES),
    (WIDENED, [(8, 21)], MAYBE),
    (NARROWED, [(10.5, 19)], MAYBE),
    (EITHER_END, [(9, 22)], YES),
    (EITHER_END, [(8.9, 22)], MAYBE),
    (EITHER_END, [(9, 22.1)], MAYBE),
    (EACH_ITS_OWN, [(11, 12), (21, 22)], YES),
    (EACH_ITS_OWN, [(11, 12), (15, 16)], NO),
    (EACH_ITS_SHARE, [(10, 11), (20, 22)], YES),
    (EACH_ITS_SHARE, [(10, 11), (20, 22.1)], MAYBE),
    (ORDER, [(0.1, 1), (0.1, 1)], YES),
    (ORDER, [(0.0, 1), (0.1, 1)], MAYBE),
    (ORDER, [(0.1, 1), (-1, 0.0)], NO),  # a tie is no increase
    (ORDER, [(0.0, 0.0), (0.1, 1)], NO),
    (STEPS, [(2.1, 3)], YES),
    (STEPS, [(2, 3)], MAYBE),
    (STEPS, [(1, 2)], NO),
    (HOLDS, [(1, 1)], YES),
    (HOLDS, [(0.9, 1)], MAYBE),
    (HOLDS, [(0.9, 0.99)], NO),
    (MOSTLY, [(0.75, 0.8), (0.9, 1)], YES),
    (MOSTLY, [(0.7, 0.8)], MAYBE),
]


@pytest.mark.parametrize(("made", "ends", "expected"), DECISIONS)
def test_rules_decide_on_the_whole_interval(made: Claim, ends, expected: str):
    found = judge(made, spans(*ends), "reduced")
    assert found.verdict == expected
    assert found.red is (expected == NO)
    assert found.why


@given(HALF, HALF, HALF, HALF, st.sampled_from(["within", "lower", "above", "upper", "below", "range"]))
def test_a_wider_interval_never_decides_what_a_narrower_one_leaves_open(low, width, printed, more, rule):
    high, wider = low + abs(width), abs(more)
    made = (
        claim(printed=(printed,), tolerance=(1.0,))
        if rule == "within"
        else claim(rule="bound", side=rule, printed=(printed, printed + 2) if rule == "range" else (printed,))
    )
    narrow, wide = verdict(made, spans((low, high))), verdict(made, spans((low - wider, high + wider)))
    assert wide in (narrow, MAYBE)


@given(HALF, HALF, HALF)
def test_at_least_and_below_are_opposites(low, width, printed):
    ours = spans((low, low + abs(width)))
    opposite = {YES: NO, NO: YES, MAYBE: MAYBE}
    for one, other in (("lower", "below"), ("above", "upper")):
        first = verdict(claim(rule="bound", side=one, printed=(printed,)), ours)
        assert verdict(claim(rule="bound", side=other, printed=(printed,)), ours) == opposite[first]


def test_a_proxy_never_decides():
    found = judge(WITHIN, spans((10, 10), proxy=True), "reduced")
    assert (found.verdict, found.red, found.measured) == ("not run", False, None)
    assert found.proxy is not None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_inconclusive(bad: float):
    assert verdict(WITHIN, Estimate((10.0,), (-math.inf,), (bad,))) == MAYBE


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


@pytest.mark.parametrize("profile", PROFILES)
def test_a_smaller_profile_never_decides(profile: str):
    made = claim(profile="reduced")
    if profile == "smoke":
        with pytest.raises(ClaimError, match="decided from reduced, not from smoke"):
            judge(made, exact(10), profile)
    else:
        assert judge(made, exact(10), profile).profile == profile


@pytest.mark.parametrize("made", [WITHIN, SEVERAL, LOWER, BOTH, ORDER])
def test_the_wrong_number_of_values_is_an_error_and_no_verdict(made: Claim):
    fitting = 2 if made.rule == "order" else len(made.printed)
    judge(made, exact([10.0] * fitting), "reduced")
    if made is not LOWER:
        with pytest.raises(ClaimError, match="toy/table1/it"):
            judge(made, exact([10.0] * (fitting + 1)), "reduced")


DOUBTED = claim(doubt="Table 2 says eleven")


@pytest.mark.parametrize(
    ("value", "rests_on", "expected", "red"),
    [
        (11, EXACT, "paper contradicts itself", False),
        (11, MODELLED, "paper contradicts itself", False),
        (11, WHOLE, NO, True),  # a training that misses shows no contradiction, nor does a time
        (11, STAND_IN, NO, True),
        (11, "", NO, True),
        (10, EXACT, YES, False),
    ],
)
def test_a_doubt_needs_what_was_computed(value, rests_on, expected, red):
    found = judge(DOUBTED, exact(value), "reduced", rests_on=rests_on)
    assert (found.verdict, found.red) == (expected, red)


def test_a_finding_explains_a_failure_and_only_that():
    made = claim(finding="the paper leaves out the decay")
    failed = judge(made, exact(11), "reduced")
    assert (failed.verdict, failed.red, failed.why) == (NO, False, "the paper leaves out the decay")
    assert verdict(made, exact(10)) == YES
    assert verdict(made, spans((9, 11))) == MAYBE


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"rule": "about"}, "rule"),
        ({"profile": "huge"}, "profile"),
        ({"needs": "luck"}, "needs"),
        ({"says": ""}, "says"),
        ({"because": ""}, "because"),
        ({"printed": ()}, "printed"),
        ({"printed": (1.0, math.nan)}, "printed"),
        ({"printed": (math.inf, 1.0)}, "printed"),
        ({"rule": "bound"}, "side"),
        ({"side": "lower"}, "side"),
        ({"rule": "bound", "side": "left"}, "side"),
        ({"rule": "bound", "side": "lower", "printed": ()}, "printed"),
        ({"rule": "bound", "side": "range"}, "printed"),
        ({"rule": "bound", "side": "range", "printed": (2.0, 1.0)}, "printed"),
        ({"rule": "bound", "side": "range", "printed": (1.0, 2.0, 3.0)}, "printed"),
        ({"rule": "order"}, "order"),
        ({"rule": "order", "order": ("one",)}, "order"),
        ({"tolerance": ()}, "tolerance"),
        ({"tolerance": (1.0, 2.0)}, "tolerance"),
        ({"printed": (1.0, 2.0), "tolerance": (1.0, -1.0)}, "tolerance"),
        ({"rule": "bound", "side": "lower", "printed": (1.0, 2.0), "tolerance": (1.0, 2.0)}, "tolerance"),
        ({"relative": -0.1}, "relative"),
        ({"rule": "holds", "relative": 0.1}, "relative"),
        ({"rule": "order", "order": ("a", "b"), "relative": 0.0}, "relative"),
    ],
)
def test_a_claim_that_cannot_be_judged_is_refused_when_it_is_read(changes, named):
    with pytest.raises(ClaimError, match=f"toy/table1/it: {named} = "):
        claim(**changes)


FILE = """
[fig1]
where = "Fig. 1"
needs = "gpu"
profile = "paper"
tolerance = 5
because = "five points"
relative = 0.1
[fig1.gain]
says = "26.79% less"
printed = 26.79
[fig1.both]
says = "two numbers"
printed = [1, 2]
profile = "smoke"
needs = "nothing"
[fig1.holds]
says = "always"
rule = "holds"
quantity = "share"
[fig2]
where = "Fig. 2"
needs = "cpu-large"
because = "so"
rule = "bound"
side = "lower"
relative = 0.1
[fig2.least]
says = "at least"
printed = 1
[fig2.about]
says = "about"
printed = 1
rule = "within"
[fig2.rising]
says = "rising"
rule = "order"
order = ["a", "b"]
property = "it cannot be false"
[fig2.shown]
says = "shown"
printed = 1
empirical = false
"""


def test_claims_are_read_with_their_artifacts_defaults(tmp_path: Path):
    path = tmp_path / "toy.toml"
    path.write_text(FILE)
    gain, both, holds, *others = load(path)
    assert (gain.id, gain.artifact, gain.paper) == ("toy/fig1/gain", "toy/fig1", "toy")
    assert (gain.printed, gain.tolerance, gain.rule, gain.quantity) == ((26.79,), (5.0,), "within", "gain")
    assert (gain.needs, gain.profile, gain.empirical) == ("gpu", "paper", True)
    assert (both.printed, both.profile, both.empirical) == ((1.0, 2.0), "smoke", False)
    assert (holds.quantity, holds.relative) == ("share", None)
    assert [(made.rule, made.side, made.relative, made.empirical) for made in others] == [
        ("bound", "lower", 0.1, True),
        ("within", "", 0.1, True),
        ("order", "", None, False),
        ("bound", "lower", 0.1, False),
    ]
    assert (others[0].profile, others[2].order) == ("smoke", ("a", "b"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("printed = 26.79", "printed = 26.79\nprited = 3", r"toy/fig1/gain: there is no key prited"),
        ('where = "Fig. 1"', 'were = "Fig. 1"', r"\[fig1\]: there is no key were"),
        ('says = "26.79% less"', "", "toy/fig1/gain.*says"),
        ("printed = 26.79", 'printed = "many"', "toy/fig1/gain"),
        ("[fig1]", "[fig1", r"toy\.toml"),
        ("[fig1]", "version = 1\n[fig1]", "'version' must be an artifact's table"),
        ("[fig1]", "[fig1]\nsays = 3", r"\[fig1\]: there is no key says"),
        ("printed = 26.79", "printed = 26.79\nrefuted_by = 'none'", "toy/fig1/both: refuted_by must say"),
        ("printed = 26.79", "printed = 26.79\nrow_of = 'toy/fig1/none'", "toy/fig1/gain: row_of = 'toy/fig1/none'"),
    ],
)
def test_a_published_file_with_a_mistake_is_refused_by_name(tmp_path: Path, old: str, new: str, message: str):
    path = tmp_path / "toy.toml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(ClaimError, match=message):
        load(path)


def test_a_quantity_over_seeds_has_the_fewest_of_them_and_of_their_degrees_of_freedom():
    one, other = Interval(1.0, 0.0, 2.0, 5, 4), Interval(3.0, 2.0, 4.0, 3, 12)
    assert over_seeds(one, note="so") == Estimate((1.0,), (0.0,), (2.0,), 5, (), "so", freedom=4)
    assert over_seeds([one, other], "ab") == Estimate((1.0, 3.0), (0.0, 2.0), (2.0, 4.0), 3, ("a", "b"), freedom=4)
    assert over_seeds(other, proxy=True).proxy


def test_measured_values_are_checked():
    with pytest.raises(ValueError, match="as many bounds"):
        Estimate((1.0, 2.0), (1.0,), (1.0,))
    with pytest.raises(ValueError, match="out of order"):
        point(1.0, spread=-1.0)
    with pytest.raises(ValueError, match="at least one"):
        exact([])
    assert (point(1.0).n, point(1.0).spans) == (1, ((1.0, 1.0, 1.0),))
    assert point([1.0, 2.0], spread=[0.5, 1.0]).spans == ((1.0, 0.5, 1.5), (2.0, 1.0, 3.0))


@pytest.mark.parametrize("basis", ["follows", "asked"])
def test_a_number_that_is_not_printed_is_read_as_a_printed_one_and_said_to_be_none(tmp_path, basis):
    path = tmp_path / "toy.toml"
    entry = "[fig1]\nwhere = '2'\nbecause = 'arithmetic'\n[fig1.ratio]\nsays = 'twice as fast'\n"
    path.write_text(entry + f"{basis} = 2\n")
    (claim,) = load(path)
    assert (claim.printed, claim.basis) == ((2.0,), basis)
    assert printed(claim) == [f"{basis}: 2"]
    path.write_text(entry + f"{basis} = 2\nprinted = 2\n")
    with pytest.raises(ClaimError, match="toy/fig1/ratio: a number is printed, follows or is asked"):
        load(path)
