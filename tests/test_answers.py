"""Answers: words that stand only as long as the verdicts and the numbers that they were written for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from suite.claims.judge import Verdict
from suite.claims.measured import Measured
from suite.papers.published import published
from suite.report.answers import Answer, AnswerError, answers
from suite.report.readme import OWN, answered

LOWER, FASTER = "isgd/fig5d/isgd-lower", "isgd/fig5a/slightly-faster"
CLAIMS = {claim.id: claim for claim in published("isgd")}
SAYS = "higher by {isgd/fig5d/isgd-lower * -100 | .1f} points,\n  or {isgd/fig5d/isgd-lower}"


def verdict(claim=LOWER, word="not reproduced", values=(-0.02,), low=(-0.03,), high=(-0.001,)):
    return replace(Verdict(CLAIMS[claim], word, ""), measured=Measured(values, low, high))


def answer(says=SAYS, **written_for):
    return Answer("Does it?", "isgd/fig5d", "a figure", says, written_for or {LOWER: "not reproduced"})


def test_numbers_come_from_what_was_measured_and_turn_with_their_factor():
    assert answer().told([verdict()]) == "higher by 2.0 [0.1, 3.0] points, or −0.02 [−0.03, −0.001]"
    assert answer().told([verdict(values=(-0.04,), low=(-0.05,))]).startswith("higher by 4.0 [0.1, 5.0] points")


def test_a_logarithm_is_told_as_the_percentage_saved():
    """Half saved is a ratio of two; a tenth more than the other's is a loss."""
    seen = verdict(FASTER, "inconclusive", (math.log(2),), (-math.log(1.1),), (math.log(4),))
    told = answer("{isgd/fig5a/slightly-faster saved | .0f}%", **{FASTER: "inconclusive"}).told([seen])
    assert told == "50 [−10, 75]%"


@pytest.mark.parametrize(
    ("says", "found", "why"),
    [
        (SAYS, [verdict(word="reproduced")], "which is reproduced; write it anew"),
        (SAYS, [], "which is no claim"),
        ("{isgd/fig5a/slightly-faster}", [verdict(), verdict(FASTER)], "no single number"),
        (SAYS, [verdict(values=(1, 2), low=(1, 2), high=(1, 2))], "no single number"),
        (SAYS, [replace(verdict(), measured=None)], "no single number"),
    ],
)
def test_what_the_verdicts_do_not_carry_is_not_told(says, found, why):
    with pytest.raises(AnswerError, match=why):
        answer(says).told(found)


def test_a_block_shows_question_sentences_and_figure():
    assert answered([answer("Yes.")], [verdict()], "docs/images") == (
        "**Does it?** Yes.\n\n![a figure](docs/images/isgd-fig5d.png)"
    )


def test_a_file_that_lacks_something_is_refused_by_name(tmp_path):
    assert answers([tmp_path]) == []
    (tmp_path / "answers.toml").write_text('[[answer]]\nquestion = "Why?"\n')
    with pytest.raises(AnswerError, match=r"answers\.toml: .*missing"):
        answers([tmp_path])


def test_the_answers_name_claims_and_have_pictures_in_the_documentation():
    names = {
        claim.id for paper in ("isgd", "inverse_law", "rudra", "matex_agd", "crossbow") for claim in published(paper)
    }
    found = answers([OWN])
    assert len(found) == 3
    for each in found:
        assert set(each.written_for) <= names
        assert (OWN.parent / "docs" / "images" / f"{each.figure.replace('/', '-')}.png").exists()
