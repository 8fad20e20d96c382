"""Claims on the same runs are corrected together; the correction came after the runs of before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.claims.board import at_level, corrected_verdicts, p_value, widened
from suite.claims.estimate import Estimate, over_seeds
from suite.claims.intervals import Interval
from suite.claims.judge import Claim, Verdict, judge
from suite.papers.catalogue import committed, paper
from suite.papers.measurement import judge_artifacts
from suite.runs.archive import Layered

SINCE = "2026-11-26"


def verdict(name: str, low: float, runs: str, began: str = "2026-11-27", word: str = "") -> Verdict:
    """A lead of 1 over ten seeds, whose interval ends at ``low``."""
    claim = Claim(f"toy/fig1/{name}", "a is below b", "1", "order", "smoke", "gpu", "so", order=("a", "b"))
    measured = Estimate((1.0,), (low,), (2 - low,), 10, tuple(runs), freedom=9)
    word = word or ("reproduced" if low > 0 else "inconclusive")
    return Verdict(claim, word, "", measured, "smoke", rests_on="whole", runs=tuple(runs), began=began)


def words(found: list[Verdict]) -> list[tuple[str, str]]:
    return [(v.verdict, v.exploratory.verdict if v.exploratory else "") for v in corrected_verdicts(found, SINCE)]


@pytest.mark.parametrize("freedom", [6, 0])
def test_an_interval_is_corrected_by_the_distribution_that_made_it(freedom: int):
    """A spread that other runs lend has their degrees of freedom, however few runs stand behind the value."""
    from scipy import stats

    law = stats.t(freedom) if freedom else stats.norm()
    measured = over_seeds(Interval(1.0, 1 - 0.96, 1 + 0.96, 1, freedom), "ab")
    found = replace(verdict("a", 0.04, "ab"), measured=measured)
    assert p_value(found) == pytest.approx(2 * law.sf(law.ppf(0.975) / 0.96), rel=1e-6)
    assert widened(measured, 0.01).low[0] == pytest.approx(1 - 0.96 * law.ppf(0.995) / law.ppf(0.975))


SEVERAL = Estimate((1.0, 2.0, 3.0), (0.9, 1.7, 3.0), (1.1, 2.4, 3.0), 5, freedom=4)  # the last has no error


@pytest.mark.parametrize(
    ("word", "rule", "keys"),
    [
        ("reproduced", "within", {"printed": (1.1, 2.0, 3.0), "tolerance": (0.25, 0.9, 0.0)}),
        ("reproduced", "bound", {"printed": (0.5, 3.5), "side": "range"}),
        ("reproduced", "bound", {"printed": (3.0,), "side": "upper"}),
        ("reproduced", "holds", {"printed": (0.8,)}),
        ("no visible difference", "bound", {"printed": (0.0,), "side": "below", "margin": 3.5}),
        ("not reproduced", "within", {"printed": (1.25, 3.0, 3.0), "tolerance": (0.1,)}),
        ("not reproduced", "bound", {"printed": (2.5,), "side": "above"}),
        ("not reproduced", "order", {"order": ("a", "b", "c", "d"), "tolerance": (1.2,)}),
    ],
)
def test_the_p_value_is_the_level_at_which_the_verdict_turns(word, rule, keys):
    claim = Claim("toy/fig1/a", "so", "1", rule, "smoke", "gpu", "so", **keys)
    found = replace(judge(claim, SEVERAL, "smoke"), rests_on="whole")
    assert found.verdict == word
    turns = p_value(found)
    assert 1e-6 < turns < 0.05
    assert at_level(found, turns * (1 + 1e-6)) == word
    assert at_level(found, turns * (1 - 1e-6)) != word


def test_a_narrow_verdict_falls_beside_others_on_its_runs_and_a_clear_one_stands():
    narrow, clear, open_ = verdict("a", 0.05, "ab"), verdict("b", 0.6, "bc"), verdict("c", -1.0, "cd")
    assert words([narrow, clear, open_]) == [("inconclusive", ""), ("reproduced", ""), ("inconclusive", "")]
    assert words([narrow, verdict("b", 0.6, "xy")]) == [("reproduced", "")] * 2  # no run in common
    for without in ("exact", ""):  # a property, and what has no grade, are of no family
        others = [replace(other, rests_on=without) for other in (clear, open_)]
        assert words([narrow, *others])[0] == ("reproduced", "")
    again = replace(narrow, claim=clear.claim, measured=replace(narrow.measured, note="printed in a table too"))
    assert words([narrow, again]) == [("reproduced", "")] * 2  # one number, one test


def test_on_runs_of_before_the_verdict_by_its_own_interval_stands():
    before = [verdict(name, low, "ab", began) for name, low, began in (("a", 0.05, "2026-11-20"), ("b", 0.04, ""))]
    assert words(before) == [("reproduced", "inconclusive")] * 2
    found = corrected_verdicts(before, SINCE)
    assert found[0].family == 2
    assert found[0].present.alone == "reproduced"


def test_where_the_rule_of_before_says_what_the_corrected_one_says_the_present_number_is_shown():
    narrow = verdict("a", 0.05, "ab", "2026-11-20")
    other = replace(narrow, verdict="inconclusive", measured=Estimate((9.0,), (-9.0,), (99.0,), 10, freedom=9))
    found, _ = corrected_verdicts([replace(other, exploratory=narrow), verdict("b", -1.0, "ab")], SINCE)
    assert (found.verdict, found.measured, found.exploratory) == ("inconclusive", narrow.measured, None)
    assert found.alone == "reproduced"


def test_a_difference_within_the_margin_is_none_that_can_be_seen():
    lead = verdict("a", 0.05, "ab", word="not reproduced")
    lead = replace(
        lead,
        claim=replace(lead.claim, order=("b", "a"), margin=5.0),
        measured=Estimate((-1.0,), (-1.95,), (-0.05,), 10, freedom=9),
    )
    assert words([lead, verdict("b", -1.0, "ab")])[0] == ("no visible difference", "")


def test_a_claim_judged_alone_has_the_family_that_it_has_on_the_board():
    """Of each verdict: an open one counts in its family too."""
    matex = paper("matex_agd")
    source = Layered(committed())
    board = {v.claim.id: v for v in judge_artifacts(matex, [each.id for each in matex.artifacts], None, source)}
    alone = judge_artifacts(matex, ["matex_agd/fig1c"], None, source)
    assert "inconclusive" in {v.verdict for v in alone if v.family > 1}
    assert all(board[v.claim.id] == v for v in alone)
