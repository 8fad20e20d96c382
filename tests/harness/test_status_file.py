"""Signs of life of a run under way: what they say, and when who gave them is taken to be gone."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from suite.runner.status_file import at_work, note_in, present

HERE = {"host": platform.node(), "pid": os.getpid()}
ELSEWHERE = {"host": "elsewhere", "pid": -1}


@pytest.mark.parametrize(
    ("note", "silent", "expected"),
    [
        (HERE, 0.0, True),
        (HERE, 59.9, True),
        (HERE, 60.0, False),
        (ELSEWHERE, 59.9, True),
        (ELSEWHERE, 60.0, False),
        (HERE | {"left": False}, 0.0, True),
        (HERE | {"left": True}, 0.0, False),
        (ELSEWHERE | {"left": True}, 0.0, False),
    ],
)
def test_who_was_silent_for_a_minute_or_has_left_is_no_more_at_work(note: dict, silent: float, expected: bool):
    assert at_work({**note, "seen": 1000.0}, 1000.0 + silent) is expected


def test_a_run_says_how_far_it_is_and_in_which_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SLURM_ARRAY_JOB_ID", raising=False)
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    with present(tmp_path, lambda: 0.25):
        note = note_in(tmp_path)
    assert (note["job"], note["fraction"]) == ("12", 0.25)


def test_a_folder_that_is_taken_away_is_no_failure(tmp_path: Path):
    (tmp_path / "x").mkdir()
    with present(tmp_path / "x", lambda: 0.0):
        (tmp_path / "x").rename(tmp_path / "another's")
    assert note_in(tmp_path / "x") is None
    assert "left" not in note_in(tmp_path / "another's")
