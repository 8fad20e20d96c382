"""What is read of the task engine's seconds, on frames made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fabricated_frames import frame_of, student

from paper_figures.crossbow.engine import ENGINE, PANEL
from suite.claims.judge import judge
from suite.papers.catalogue import published
from suite.papers.printed_settings import describe
from suite.spec import RunSpec

CLAIMS = {claim.quantity: claim for claim in published("crossbow") if claim.artifact == "crossbow/engine"}
REPEATS = range(ENGINE.settings["repeats"])


def frame(round_robin=1.2, barrier=1.3, tuned=2, rates=(100.0, 190.0, 200.0, 150.0)):
    """Every repeat is slower than the one before, all of its sides alike but for a few thousandths."""
    sides = {f"first come, {batches}": 1.0 for batches in ("alike", "varied")}
    sides |= {f"round robin, {batches}": round_robin for batches in ("alike", "varied")}
    sides |= {f"barrier, {batches}": barrier for batches in ("alike", "varied")}
    sides |= {f"{k} learners": 16 * k / rate for k, rate in enumerate(rates, 1)}
    rows = [
        (side, repeat, seconds * (1 + repeat) * (1 + (at * repeat) % 3 / 500))
        for at, (side, seconds) in enumerate(sides.items())
        for repeat in REPEATS
    ]
    table = dict(zip(("side", "repeat", "seconds"), map(list, zip(*rows, strict=True)), strict=True))
    return frame_of(
        {"engine": [{"tuned": tuned, "tables": {"seconds": table}}], "asleep": [{"tables": {"seconds": table}}]}
    )


def verdict(name: str, **world: float) -> str:
    quantity = PANEL.quantities[name]
    return judge(CLAIMS[name], quantity.of(frame(**world)), "paper").verdict


@pytest.mark.parametrize(
    ("name", "otherwise"),
    [
        ("first-come-faster", {"round_robin": 0.9}),
        ("overlap-faster", {"barrier": 0.95}),
        ("first-come-faster-asleep", {"round_robin": 0.9}),
        ("overlap-faster-asleep", {"barrier": 0.95}),
        ("tuned-near-best", {"tuned": 4}),
        ("tuned-near-best", {"tuned": 1}),
    ],
)
def test_both_verdicts_follow_from_seconds(name, otherwise):
    assert verdict(name) == "reproduced"
    assert verdict(name, **otherwise) == "not reproduced"


def test_ratios_are_paired_by_repeat():
    """Repeats differ by a factor of 25, and each ratio by thousandths."""
    seconds = frame().table("seconds", "engine").set_index("side")["seconds"]
    log = lambda side: np.log(seconds[side].to_numpy())  # [repeats]
    for name, rule, kinds in (
        ("first-come-faster", "round robin", ["varied"]),
        ("overlap-faster", "barrier", ["alike", "varied"]),
        ("first-come-faster-asleep", "round robin", ["varied"]),
        ("overlap-faster-asleep", "barrier", ["varied"]),
    ):
        wanted = [student(log(f"{rule}, {kind}") - log(f"first come, {kind}")) for kind in kinds]
        assert PANEL.quantities[name].of(frame()).spans == tuple(map(pytest.approx, wanted))
    over_best = np.exp(student(math.log(2 / 3) + log("3 learners") - log("2 learners")))
    assert PANEL.quantities["tuned-near-best"].of(frame()).spans == (pytest.approx(tuple(over_best)),)


def test_one_number_of_learners_is_described_as_a_schedule_of_them_is():
    """The settings of an engine name learners by one number, which once kept its runs from being graded."""
    spec = RunSpec("crossbow/engine", {"learners": 4, "model": "crossbow_lenet", "batch": 16})
    assert describe(spec).workers == 4
