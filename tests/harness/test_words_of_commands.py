"""What ``list`` and ``doctor`` say, and how a mistake or a fault is told."""

from __future__ import annotations

import pytest

from suite.cli import errors
from suite.commands.terminal import duration
from suite.runs.store import DamagedRun


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (59.6, "1 min 0 s"),
        (3599.7, "1 h 0 min"),
        (7_530, "2 h 5 min"),
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
