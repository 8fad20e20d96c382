"""What ``list`` and ``doctor`` say, and how a mistake or a fault is told."""

from __future__ import annotations

import pytest

from suite.cli import output
from suite.runs.store import DamagedRun


@pytest.mark.parametrize(
    ("error", "code"), [(ValueError("a\n  b"), 2), (OSError("a b"), 2), (DamagedRun("a b"), 1)], ids=repr
)
def test_what_a_user_can_act_on_is_one_sentence(error: Exception, code: int, capsys: pytest.CaptureFixture[str]):
    assert output.explain(error) == code
    assert tuple(capsys.readouterr()) == ("", "sgd-suite: a b\n")


def test_a_fault_of_ours_keeps_its_traceback(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(KeyError) as fault:
        {}["absent"]
    assert output.explain(fault.value) == 2
    told = capsys.readouterr().err
    assert told.startswith("Traceback")
    assert told.endswith("KeyError: 'absent'\n")
