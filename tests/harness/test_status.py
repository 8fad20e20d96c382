"""What ``status`` makes of a store's folders, and how it says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import toy

from suite.commands.status import job_states, lines, seconds_left, status
from suite.runs.store import Store
from suite.spec import RunSpec

RUN = RunSpec("toy/draw").id


def test_a_stored_run_is_stored_whatever_is_left_of_its_folder(tmp_path: Path):
    store = Store(tmp_path, create=True)
    store.commit(RUN, toy.files_of(RunSpec("toy/draw")))
    (store.partial(RUN) / "x").mkdir(parents=True)
    found = status(tmp_path)
    assert (found["counts"]["stored"], found["counts"]["interrupted"], found["runs"]) == (1, 0, {})


def test_a_stray_file_is_no_run_under_way(tmp_path: Path):
    store = Store(tmp_path, create=True)
    store.partial(RUN).mkdir(parents=True)
    (store.partial(RUN) / "stray").touch()
    assert status(tmp_path)["runs"] == {}


def test_a_folder_without_a_sign_of_life_is_of_an_interrupted_run(tmp_path: Path):
    store = Store(tmp_path, create=True)
    (store.partial(RUN) / "x").mkdir(parents=True)
    assert status(tmp_path)["runs"] == {RUN: {"state": "interrupted"}}


def test_the_jobs_of_an_engine_that_is_gone_are_unknown(tmp_path: Path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "ray-1.json").write_text(json.dumps({"engine": "ray", "job": "1"}))
    assert job_states(tmp_path)["ray"]["unknown"].startswith("no engine is called 'ray'")


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


def found(**more: Any) -> dict[str, Any]:
    plain = {"store": "s", "counts": {"stored": 1, "queued": 2}, "runs": {}, "jobs": {}, "seconds_left": None}
    return plain | more


def test_the_store_and_its_counts_come_first_and_no_guess_is_made_of_the_time():
    assert lines(found()) == ["s: 1 stored, 2 queued"]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "nothing left to do"),
        (59.4, "about 59 s left"),
        (59.6, "about 1 min 0 s left"),
        (61.0, "about 1 min 1 s left"),
        (3599.0, "about 59 min 59 s left"),
        (3600.0, "about 1 h 0 min left"),
        (7265.0, "about 2 h 1 min left"),
    ],
)
def test_the_time_left_is_told_as_one_says_it(seconds: float, told: str):
    assert lines(found(seconds_left=seconds))[-1] == told


def test_each_run_is_told_with_its_place_and_progress():
    here = {"host": "n1", "job": "", "since": 100.0, "seen": 175.0, "fraction": 0.25}
    runs = {
        "a": {"state": "running", "artifact": "toy/fig1", **here, "job": "5_2"},
        "b": {"state": "running", **here, "seen": 90.0},
        "c": {"state": "interrupted", **here},
        "d": {"state": "failed", "artifact": "toy/fig1", "failure": "d/failure.txt", **here},
        "e": {"state": "interrupted"},
    }
    assert lines(found(runs=runs))[1:] == [
        "  running      a toy/fig1 on n1 in job 5_2 since 1 min 15 s, 25% done",
        "  running      b  on n1 since 0 s, 25% done",
        "  interrupted  c  on n1",
        "  failed       d toy/fig1 on n1 d/failure.txt",
        "  interrupted  e",
    ]


def test_workers_are_counted_by_engine_and_state():
    jobs = {"slurm": {"running": 2, "pending": 1}, "idle": {}, "ray": {"unknown": "no engine is called 'ray'"}}
    told = ["slurm: 2 running, 1 pending", "idle: no worker left", "ray: no engine is called 'ray'"]
    assert lines(found(jobs=jobs))[1:] == told
