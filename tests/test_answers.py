"""Answers: words that stand only as long as the verdicts and the numbers that they were written for."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean

import pytest

from paper_figures.rudra.errors import finals
from paper_figures.rudra.plans import label
from paper_figures.together import board
from paper_figures.together.methods import methods
from suite.claims.estimate import Estimate
from suite.claims.judge import Verdict
from suite.papers.catalogue import committed, paper, published
from suite.report.answers import Answer, AnswerError, answers, beside_claims
from suite.report.readme import OWN
from suite.runs.archive import Layered

LOWER, FASTER = "isgd/fig5d/isgd-lower", "isgd/fig5a/slightly-faster"
CLAIMS = {claim.id: claim for claim in published("isgd")}
SAYS = "higher by {isgd/fig5d/isgd-lower * -100 | .1f} points,\n  or {isgd/fig5d/isgd-lower}"


def verdict(claim=LOWER, word="not reproduced", values=(-0.02,), low=(-0.03,), high=(-0.001,)):
    return replace(Verdict(CLAIMS[claim], word, ""), measured=Estimate(values, low, high))


def answer(says=SAYS, **written_for):
    return Answer("Does it?", "isgd/fig5d", "a figure", says, written_for or {LOWER: "not reproduced"})


def test_numbers_come_from_what_was_measured_and_turn_with_their_factor():
    assert told(answer(), verdict()) == "higher by 2.0 [0.1, 3.0] points, or −0.02 [−0.03, −0.001]"
    assert told(answer(), verdict(values=(-0.04,), low=(-0.05,))).startswith("higher by 4.0 [0.1, 5.0] points")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("saved | .0f", "50 [−10, 75]"),
        ("more | .0f", "−50 [−75, 10]"),
        ("more ends | +.0f", "−75 to +10"),
        ("more value | .0f", "−50"),
        ("more within | .0f", "75"),
        ("n", "3"),
    ],
)
def test_a_logarithm_of_a_ratio_is_told_as_a_percentage_in_several_shapes(place, text):
    """Half saved is a ratio of two; a tenth more than the other's is a loss."""
    seen = verdict(FASTER, "inconclusive", (math.log(2),), (-math.log(1.1),), (math.log(4),))
    seen = replace(seen, measured=replace(seen.measured, n=3))
    says = f"{{isgd/fig5a/slightly-faster {place}}}"
    assert told(answer(says, **{FASTER: "inconclusive"}), seen) == text


@pytest.mark.parametrize(
    ("says", "found", "why"),
    [
        (SAYS, [verdict(word="reproduced")], "which is reproduced; write it anew"),
        (SAYS, [], "which is no claim"),
        ("{isgd/fig5a/slightly-faster}", [verdict(), replace(verdict(FASTER), measured=None)], "no single number"),
        ("{isgd/fig5a/slightly-faster printed}", [verdict(), verdict(FASTER)], "no single number is printed"),
        (SAYS, [verdict(values=(1, 2), low=(1, 2), high=(1, 2))], "no single number"),
        (SAYS, [replace(verdict(), measured=None)], "no single number"),
        (f"{SAYS} {{isgd/fig5a/faster, in %}}", [verdict()], "a place that names no number"),
    ],
)
def test_what_the_verdicts_do_not_carry_is_not_told(says, found, why):
    with pytest.raises(AnswerError, match=why):
        answer(says).told(found, {})


def test_an_answer_falls_silent_where_a_value_leaves_its_range():
    held = replace(answer("Yes."), ranges={"isgd/zeta/largest": (0, 10)})
    at = lambda value: {"isgd/zeta/largest": Estimate((value,), (value,), (value,))}
    assert told(held, verdict(), at(4)) == "Yes."
    with pytest.raises(AnswerError, match="between 0 and 10, which is 11"):
        told(held, verdict(), at(11))


def told(which, found, others=None):
    return which.told([found], others or {}).says


IN_PRINT = """
0 128 1 17.9   0 4 30 18.15   0 8 30 18.56
1 4 30 18.09   30 4 30 18.41   18 8 18 18.92   10 16 10 18.79   4 32 4 18.82   2 64 2 17.96
1 8 30 20.04   30 8 30 19.65   18 16 18 20.33   10 32 10 20.82   4 64 4 20.70   2 128 2 19.52   1 128 2 19.59
1 16 30 23.25   30 16 30 22.14   18 32 18 23.63   10 64 10 24.08   4 128 4 23.01
1 32 30 27.16   30 32 30 27.27   18 64 18 28.31   1 128 10 29.83   10 128 10 29.90
"""  # n, mu, lambda and test error (%) of section 5.4, Table 3 and Table 2, typed off the paper


@pytest.mark.evidence
def test_the_numbers_of_the_committed_answers_are_those_of_the_stored_runs():
    """Recomputed here without the answers' own functions."""
    source = Layered(committed())
    told = [answer for answer in answers([OWN]) if "rudra/table2/against-print" in answer.names]
    rms, _, rows = beside_claims(told, source)["rudra/table2/against-print"].values
    frame = paper("rudra").artifact("rudra/table2").read(source, "paper")
    numbers = IN_PRINT.split()
    printed = {
        label(tuple(map(int, numbers[at : at + 3]))): float(numbers[at + 3]) for at in range(0, len(numbers), 4)
    }
    squares = [(fmean(finals(frame, name)) - error) ** 2 for name, error in printed.items() if frame.results(name)]
    assert (len(printed), len(squares)) == (26, rows)
    assert rms == pytest.approx(math.sqrt(math.fsum(squares) / rows))


@pytest.mark.evidence
def test_what_the_last_answer_counts_in_words_is_what_the_boards_have():
    source = Layered(committed())
    found, ends = {}, {}
    for task in ("mnist", "cifar10", "multi30k"):
        panel = paper("together").artifact(f"together/{task}")
        frame = panel.read(source, "reduced")
        known = methods(board.PROFILES[panel.id]["reduced"])
        names = {(method.label, method.learners): method.name for method in known}
        table = board.table(panel.id, frame)
        table["name"] = [names[key] for key in zip(table["method"], table["learners"], strict=True)]
        found[task] = table.set_index(["name", "score"]).sort_index()
        ends[task] = {name: frame.run(name).curve("ends") for name in found[task].index.unique("name")}
    five = ("isgd", "delayed-4", "layerwise-4", "hardsync-4", "softsync-4", "sma-4")
    tables = list(found.values())
    saves = lambda method, score: [each.says[method, score] == "less" for each in tables]
    assert not any(any(saves(method, "gradients")) for method in five)
    for each in tables:  # no method of the papers ends below synchronous SGD's rounds with its whole interval
        assert not any(each.high[name, "rounds"] < each.low["sync-4", "rounds"] for name in five)
    assert saves("adamw", "gradients") == [False, True, True]
    assert saves("diloco-4", "gradients") == [True, False, True]
    arrived = found["multi30k"].query("learners == 4 and reached > 0")
    assert set(arrived.index.unique("name")) == {"diloco-4"}
    counts = lambda name: [tuple(each.loc[(name, "rounds"), ["reached", "seeds"]]) for each in tables]
    assert [reached for reached, _ in counts("delayed-4")] == [8, 0, 0]
    assert counts("softsync-4") == [(4, 8), (1, 5), (0, 4)]
    lead = found["mnist"].says["isgd"]
    assert (lead["rounds"], lead["gradients"]) == ("", "")
    same = found["multi30k"].loc[("isgd", "gradients")]
    assert (same.ratio, same.low, same.high) == (1, 1, 1)
    assert found["mnist"].momentum["sma-4", "rounds"] == 0
    lost = {name: each[each["status"] == "diverged"]["gradients"] for name, each in ends["mnist"].items()}
    assert (len(lost["sma-4"]), lost["sma-4"].max() < math.inf) == (2, True)
    assert lost["sync-4"].tolist() == [math.inf]


def test_the_answers_name_claims_and_have_pictures_in_the_documentation():
    names = {
        claim.id for paper in ("isgd", "inverse_law", "rudra", "matex_agd", "crossbow") for claim in published(paper)
    }
    found = answers([OWN])
    assert found
    for each in found:
        assert set(each.written_for) <= names
        assert (OWN.parent / "docs" / "images" / f"{each.figure.replace('/', '-')}.png").exists()
