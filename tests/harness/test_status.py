"""What ``status`` makes of a store's folders, and how it says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import toy

from suite.commands.status import seconds_left, status
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
