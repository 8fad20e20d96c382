"""The boards: every verdict counted once, by what it rests on, and how many chance explains."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import groupby

import pytest

from suite.claims.board import Board, apart, board, corrected, lines, proxy_says, word
from suite.claims.estimate import EXACT, MODELLED, REDUCED, WHOLE, Estimate
from suite.claims.estimate import over_seeds as exact
from suite.claims.judge import CLAIM, Claim, Verdict
from suite.papers.catalogue import published
from suite.report.readme import OWN, board_of_papers, findings, first_table


def verdict(said: str, rests_on: str, decides: bool = False) -> Verdict:
    claim = Claim(f"toy/fig1/{said}-{rests_on}", "It is so", "1", "holds", "smoke", "gpu", "a reason")
    return Verdict(claim, said, "", exact(1.0), "smoke", rests_on=rests_on, decides=decides)


def test_the_boards_count_every_verdict_once_and_decide_on_few():
    found = [
        replace(verdict("reproduced", WHOLE, True), uncommitted=2),
        replace(verdict("reproduced", REDUCED), uncommitted=1),
        replace(
            verdict("not reproduced", REDUCED, True),
            exploratory=verdict("inconclusive", REDUCED, True),
            uncommitted=1,
        ),
        verdict("reproduced", EXACT, True),
        verdict("not reproduced", EXACT, True),
        Verdict(verdict("not run", "").claim, "not run", "nothing is stored"),
    ]
    counted = board(found)
    assert isinstance(counted, Board)
    assert next(iter(counted.empirical)) == WHOLE
    assert counted.decides == {"reproduced": 1, "not reproduced": 1}
    assert counted.standing == 1  # the other is inconclusive by the present rule
    assert counted.uncommitted == 2  # claims, of three runs
    assert counted.properties[EXACT] == {"holds": 1, "does not hold": 1}
    assert sum(c.total() for c in (*counted.empirical.values(), *counted.properties.values())) == len(found)
    assert [word(v) for v in found[:4]] == ["reproduced", "reproduced", "not reproduced", "holds"]
    text = lines(counted)
    assert text[0] == "empirical claims, 4; decided: 1 reproduced, 1 not reproduced"
    assert text[1].split() == ["whole:", "1", "reproduced"]
    assert text[-1].split() == ["exact:", "1", "holds,", "1", "does", "not", "hold"]


@pytest.mark.parametrize(
    ("families", "fallen", "said"),
    [
        (1, "a", "; it does not stand so"),
        (3, "", "; all stand so"),
        (3, "a", "; 1 does not stand so: a"),
        (3, "ab", "; 2 do not stand so: a, b"),
    ],
)
def test_what_falls_among_claims_on_the_same_runs_is_said(families: int, fallen: str, said: str):
    assert corrected(Board({}, {}, Counter(), {}, families=families, fallen=tuple(fallen))).endswith(said)


def test_runs_that_several_claims_share_count_once():
    measured = [replace(exact(1.0), runs=tuple(ids)) for ids in ("ab", "bc")]
    made = [replace(verdict("reproduced", REDUCED), measured=each) for each in measured]
    counted = board([*made, replace(made[0], rests_on=WHOLE)])
    assert (counted.runs[REDUCED], counted.runs[WHOLE]) == (3, 2)
    assert "2 reproduced; 3 runs" in "\n".join(lines(counted))


@pytest.mark.parametrize(
    ("rule", "low", "high", "said"),
    [
        ("order", 0.5, 1.5, "for"),
        ("order", -1.5, -0.5, "against"),
        ("order", -0.5, 1.5, "open"),
        ("order", math.nan, 1.5, "number"),
        ("within", 0.5, 1.5, "number"),
    ],
)
def test_a_proxy_speaks_of_relations_alone_and_of_what_is_a_number(rule, low, high, said):
    order = ("a", "b") if rule == "order" else ()
    made = replace(verdict("not run", "").claim, rule=rule, order=order, printed=(1.0,))
    found = Verdict(made, "not run", "", proxy=Estimate((1.0,), (low,), (high,)))
    assert proxy_says(found) == said
    assert proxy_says(replace(found, measured=found.proxy)) == ""
    assert board([found]).beside == {said: 1}


def test_rows_of_a_claim_are_counted_apart_from_claims():
    lead = verdict("reproduced", WHOLE, True)
    row = replace(lead, verdict="not reproduced", claim=replace(lead.claim, row_of=lead.claim.id))
    counted = board([lead, row, row])
    assert (counted.decides, counted.rows) == ({"reproduced": 1}, {WHOLE: {"not reproduced": 2}})
    assert "rows of these claims, judged one by one: whole 2 not reproduced" in lines(counted)


def test_what_was_not_registered_first_is_counted_by_kind_in_alphabetical_order():
    orders = ("undated", "late", "registered", "amended", "late", "")
    counted = board([replace(verdict("reproduced", REDUCED), order=order) for order in orders])
    assert apart(counted, REDUCED) == " (1 amended, 2 late, 1 undated)"
    assert apart(counted, WHOLE) == apart(counted, "nothing measured") == ""
    assert any(line.endswith("6 reproduced (1 amended, 2 late, 1 undated)") for line in lines(counted))


def test_every_claim_that_could_be_decided_stands_in_one_finding():
    for name, found in groupby(findings(OWN), lambda finding: finding.paper):
        globs = [f"{name}/{glob}" for finding in found for glob in finding.claims]
        for claim in published(name):
            if claim.kind == CLAIM and not (claim.row_of or claim.machine or claim.doubt):
                assert sum(fnmatchcase(claim.id, glob) for glob in globs) == 1, claim.id


def test_what_fails_on_an_unprinted_setting_is_counted():
    claim = Claim("toy/fig1/x", "It is so", "1", "bound", "smoke", "gpu", "a reason", (1.0,), side="lower")
    made = [Verdict(claim, "undetermined", "", exact(value), rests_on=WHOLE) for value in (0.5, 1.5)]
    assert board(made).excused == 1
    assert "1 that fail by rule are undetermined" in first_table(made)


def test_a_line_of_a_paper_counts_what_decides_and_what_stands():
    first = verdict("reproduced", WHOLE, True)
    fallen = replace(first, exploratory=verdict("inconclusive", WHOLE))
    modelled = replace(first, rests_on=MODELLED, decides=False)
    assert board_of_papers([first, fallen, modelled]).splitlines()[-1] == "| `toy` | 3 | 3 | 2 | 1 |  |"


def test_the_board_says_what_chance_explains():
    spread = replace(verdict("reproduced", REDUCED), measured=Estimate((1.0,), (0.9,), (1.1,), 3))
    failed = replace(verdict("not reproduced", REDUCED), measured=spread.measured)
    of_code = replace(verdict("reproduced", EXACT), measured=spread.measured)
    counted = board([spread] * 40 + [failed, of_code, verdict("reproduced", REDUCED)])
    assert counted.spread == 40
    assert counted.by_chance == pytest.approx(1)
    assert any("reproduced with an interval: 40" in line for line in lines(counted))
    assert not any("by chance" in line for line in lines(board([of_code, failed])))


def test_what_rests_on_one_run_is_said_and_only_that():
    once = replace(verdict("reproduced", WHOLE), measured=Estimate((1.0,), (0.9,), (1.1,), 1))
    often = replace(once, measured=Estimate((1.0,), (0.9,), (1.1,), 3))
    said = "  on one run each, without a spread of our own: 1"
    assert said in lines(board([once, often]))
    assert not any("on one run each" in line for line in lines(board([often])))
