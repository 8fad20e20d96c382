"""What ``list`` and ``doctor`` say, and how a mistake or a fault is told."""

from __future__ import annotations

from typing import Any

import pytest

from suite.cli import errors
from suite.commands import list_
from suite.commands.terminal import duration
from suite.runs.store import DamagedRun


def artifact(name: str, **runs: tuple[int, int, int]) -> dict[str, Any]:
    held = {
        profile: dict(zip(("needed", "yours", "committed"), counts, strict=True)) for profile, counts in runs.items()
    }
    return {"id": name, "title": f"About {name}", "claims": [{}, {}], "runs": held}


def test_a_listing_says_whose_runs_there_are_of_each_artifact():
    rows = [
        artifact("toy/a", smoke=(4, 1, 2), reduced=(3, 0, 0), paper=(0, 0, 0)),
        artifact("toy/b", smoke=(2, 0, 2), reduced=(2, 2, 0)),
        artifact("toy/c", smoke=(0, 0, 0)),
    ]
    assert [" ".join(line.split()) for line in list_.lines(rows)] == [
        "toy/a 2 claims About toy/a [smoke 1 yours + 2 committed of 4, reduced 0 of 3]",
        "toy/b 2 claims About toy/b [smoke 2 committed of 2, reduced 2 yours of 2]",
        "toy/c 2 claims About toy/c [no runs needed]",
        "3 artifacts, 6 claims",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.44, "0.4 s"),
        (0.97, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599.7, "1 h 0 min"),
        (7_530, "2 h 5 min"),
        (86_399.6, "1 d 0 h"),
        (42_168_733, "488 d 1 h"),
    ],
)
def test_a_time_is_said_in_its_two_largest_units(seconds: float, text: str):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("error", "code"), [(ValueError("a\n  b"), 2), (OSError("a b"), 2), (DamagedRun("a b"), 1)], ids=repr
)
def test_what_a_user_can_act_on_is_one_sentence(error: Exception, code: int, capsys: pytest.CaptureFixture[str]):
    assert errors.explain(error) == code
    assert tuple(capsys.readouterr()) == ("", "sgd-suite: a b\n")


def test_a_fault_of_ours_keeps_its_traceback(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(KeyError) as fault:
        {}["absent"]
    assert errors.explain(fault.value) == 2
    told = capsys.readouterr().err
    assert told.startswith("Traceback")
    assert told.endswith("KeyError: 'absent'\n")
