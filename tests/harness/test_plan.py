"""What ``plan`` says of runs that are still to be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite.commands import planning
from suite.commands.plan import lines, summary
from suite.commands.planning import Planned, lacking_data
from suite.papers.catalogue import SelectorError, select
from suite.runner import calibration
from suite.runner.calibration import Calibration
from suite.spec import RunSpec

SPECS = [RunSpec("toy/draw", {}, seed) for seed in range(3)]
PLAN = [
    Planned(SPECS[0], 1.005, 4_000_000, (), ("toy/table1",), "draws"),
    Planned(SPECS[1], 20.125, 2_000_000, ("imagenet",), ("toy/fig1", "toy/table1"), "draws"),
    Planned(SPECS[2], 8_361_857.0, 3_000_000, (), ("toy/fig1",), "a few"),
]
FIRST = {SPECS[0].id}
MADE = Calibration(calibration.machine_class(), "cuda", {}, 2.0, 3.0)


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No data set is here but the digits."""
    monkeypatch.setattr(planning, "available", lambda name, root: (name == "digits", f"{name} is not below {root}"))


def test_what_is_left_is_what_is_not_yours():
    assert summary(PLAN, FIRST, {SPECS[0].id, SPECS[1].id}, "smoke", Path("d"), None) == {
        "profile": "smoke",
        "runs": 3,
        "yours": 1,
        "committed": 1,
        "core_seconds": 8_361_877.1,
        "peak_memory_bytes": 3_000_000,
        "missing_data": {"imagenet": "imagenet is not below d"},
        "calibrated": None,
    }


@pytest.mark.parametrize(
    ("made", "basis"), [(None, "of one core of the reference CPU"), (MADE, "measured here on cuda")]
)
def test_the_sum_comes_first_then_what_is_missing_then_the_longest_run(made: Calibration | None, basis: str):
    cure = "hosts have taken 0.4 to 2.4 times as long; --calibrate 60 measures this machine for a minute"
    starts = "on top: 3 s to start; to choose how a kind of training runs 10 to 60 s, or some 50 updates"
    advice = [starts] if made else [starts, cure]
    text = lines(PLAN, FIRST, summary(PLAN, FIRST, set(), "smoke", Path("d"), made))
    told = [" ".join(line.split()) for line in text]
    assert told == [
        f"3 runs at smoke: 1 yours, 0 committed; what is not yours takes about 96 d 18 h {basis}, at most 3 MB each",
        "missing: imagenet is not below d",
        *advice,
        f"96 d 18 h 3 MB toy/fig1 'a few', seed 2 {SPECS[2].id}",
        f"20 s 2 MB toy/fig1 'draws', seed 1 {SPECS[1].id}; also toy/table1",
        f"yours toy/table1 'draws', seed 0 {SPECS[0].id}",
    ]


def test_of_several_data_sets_that_are_missing_one_line_tells():
    """A line for each with its own cure fills a screen before the first run is named."""
    assert lacking_data({}) == []
    assert lacking_data({"a": "a is not below d; fetch it"}) == ["missing: a is not below d; fetch it"]
    (line,) = lacking_data({"a": "a is not below d", "b": "b is not below d"})
    assert line == "missing: a, b; `sgd-suite data list` says of each how to get it"


def test_one_group_alone_is_planned_by_its_name_or_a_glob():
    selection = select(["isgd/fig5a"])
    for only in ("isgd", "i*"):
        chosen = planning.plan(selection, "smoke", 1, only)
        assert [(each.group, each.spec.seed) for each in chosen] == [("isgd", 0)]
    with pytest.raises(SelectorError, match="no group of runs is called 'none' at smoke; there are 'isgd', 'sgd'"):
        planning.plan(selection, "smoke", only="none")
