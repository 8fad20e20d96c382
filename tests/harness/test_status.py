"""What ``status`` makes of a store's folders; signs of life, and when whoever gave them is taken to be gone."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path
from typing import Any

import pytest
import toy

from suite.commands.status import seconds_left, status
from suite.runner.status_file import at_work, note_in, present
from suite.runs.store import Store
from suite.spec import RunSpec

RUN = RunSpec("toy/draw").id


def test_a_stored_run_is_stored_whatever_is_left_of_its_folder(tmp_path: Path):
    store = Store(tmp_path, create=True)
    store.commit(RUN, toy.files_of(RunSpec("toy/draw")))
    (store.partial(RUN) / "x").mkdir(parents=True)
    found = status(tmp_path)
    assert (found["counts"]["stored"], found["counts"]["interrupted"], found["runs"]) == (1, 0, {})


def running(fraction: float | None = None, since: float = 0.0, state: str = "running") -> dict[str, Any]:
    return {"state": state, "since": since} | ({} if fraction is None else {"fraction": fraction})


WANTED = {"a": {"seconds": 100.0}, "b": {"seconds": 300.0}}


@pytest.mark.parametrize(
    ("runs", "left"),
    [
        # 30 estimated seconds in 10 of a worker's, 370 to go: by one worker, and by two
        ({"a": running(0.3, 990.0)}, 370 / 3),
        ({"a": running(0.15, 995.0), "b": running(0.05, 995.0)}, 370 / 3 / 2),
        # what an interrupted run has done is done, and says nothing of the pace
        ({"a": running(0.3, 990.0), "b": running(0.5, 0.0, "interrupted")}, (370 - 150) / 3),
        # a run that has told nothing yet has done nothing, and one that no plan holds has no estimate
        ({"a": running(0.3, 990.0), "b": running(None, 1000.0)}, 370 / 3 / 2),
        ({"a": running(0.3, 990.0), "other": running(0.5, 1000.0)}, 370 / 3 / 2),
        # a worker whose clock is ahead of ours has spent no time, and not less than none
        ({"a": running(0.3, 990.0), "b": running(0.0, 1500.0)}, 370 / 3 / 2),
        # nobody has got anywhere, or nobody has spent any time on it
        ({"a": running(0.0, 990.0)}, None),
        ({"a": running(0.3, 1000.0)}, None),
        ({"a": running(0.3, 990.0, "failed")}, None),
    ],
)
def test_the_time_left_is_the_work_left_at_the_pace_of_all_who_work(runs: dict[str, Any], left: float | None):
    assert seconds_left(WANTED, set(), runs, 1000.0) == (None if left is None else pytest.approx(left))


HERE = {"host": platform.node(), "pid": os.getpid()}
ELSEWHERE = {"host": "elsewhere", "pid": -1}


@pytest.mark.parametrize(
    ("note", "silent", "expected"),
    [
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


def test_a_run_that_ends_while_the_folders_are_listed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store, scandir = Store(tmp_path, create=True), os.scandir
    for run in ("a", "b"):
        (store.partial(run) / "x").mkdir(parents=True)

    def gone_by_then(path: Any) -> Any:
        if str(path) == str(store.partial("b")):
            shutil.rmtree(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", gone_by_then)
    assert list(status(tmp_path)["runs"]) == ["a"]
