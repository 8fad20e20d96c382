"""Several users, machines and clocks on one store: nobody stops another, and who stands still is named."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import toy

from suite.commands import run as command
from suite.commands.status import lines, status
from suite.papers.catalogue import experiment
from suite.runner.execute import RunnerConfig, execute, execute_all
from suite.runner.progress import Progress
from suite.runner.status_file import NOTE
from suite.runs.run import StoreError, verified
from suite.runs.store import NewRun, Store
from suite.spec import RunSpec

pytestmark = pytest.mark.usefixtures("papers")

SPECS = [RunSpec("toy/draw", seed=seed) for seed in range(3)]
HOUR = 3600.0


def of_another_user(path: Path, monkeypatch: pytest.MonkeyPatch, *, readable: bool) -> None:
    """Let a file be another user's, which this one cannot write."""
    path.touch()
    real = os.open

    def refusing(name: Any, flags: int, *rest: Any, **more: Any) -> int:
        if Path(os.fsdecode(name)) == path and (flags & (os.O_WRONLY | os.O_RDWR) or not readable):
            raise PermissionError(13, "Permission denied", str(path))
        return real(name, flags, *rest, **more)

    def opening(name: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if isinstance(name, str | Path) and Path(name) == path and (mode != "r" or not readable):
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(name, mode, *rest, **more)

    real_open = open
    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr("builtins.open", opening)


def test_the_lock_file_of_another_user_locks_as_one_s_own(store: Store, monkeypatch: pytest.MonkeyPatch):
    of_another_user(store.root / "locks" / SPECS[0].id, monkeypatch, readable=True)
    with store.claim(SPECS[0].id) as mine:
        assert mine
        assert store.busy(SPECS[0].id)
    assert execute(SPECS[0], experiment, RunnerConfig(store.root)).state == "stored"


def test_a_lock_that_cannot_be_taken_fails_its_run_alone(store: Store, monkeypatch: pytest.MonkeyPatch):
    path = store.root / "locks" / SPECS[1].id
    of_another_user(path, monkeypatch, readable=False)
    reports = {report.spec.seed: report for report in execute_all(SPECS, experiment, RunnerConfig(store.root))}
    assert [reports[seed].state for seed in range(3)] == ["stored", "failed", "stored"]
    assert reports[1].why == f"its lock cannot be taken (Permission denied: {path})"


def test_a_stored_run_needs_no_lock(store: Store, monkeypatch: pytest.MonkeyPatch):
    around = RunnerConfig(store.root)
    execute(SPECS[0], experiment, around)
    of_another_user(store.root / "locks" / SPECS[0].id, monkeypatch, readable=False)
    assert execute(SPECS[0], experiment, around).state == "present"


def note(store: Store, silent: float = 0.0, **fields: Any) -> Path:
    """A sign of life of the first run, so many seconds old."""
    path = store.partial(SPECS[0].id) / "x" / NOTE
    path.parent.mkdir(parents=True)
    about = {"host": "n1", "pid": 123, "job": "", "since": time.time() - silent, "fraction": 0.5}
    path.write_text(json.dumps(about | fields))
    os.utime(path, (time.time() - silent,) * 2)
    return path


@pytest.mark.parametrize(
    ("silent", "told"),
    [
        (5.0, []),
        (240.0, [f"waiting for {SPECS[0].id}: pid 123 on n1, silent for 4 min 0 s; end it, or leave its runs"]),
    ],
)
def test_a_holder_that_stands_still_is_named_once_with_the_way_out(
    store: Store, silent: float, told: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    note(store, silent)
    monkeypatch.setattr(command, "LOOK", 0.0)
    looks = iter([False, False, False, True])
    with store.claim(SPECS[0].id):
        assert command._wait([SPECS[0]], store, lambda: next(looks), Progress({})) == []
    said = [line for line in capsys.readouterr().err.splitlines() if "pid" in line]
    assert [line[: len(start)] for line, start in zip(said, told, strict=True)] == told


def test_an_import_stands_whatever_the_clock_of_another_process(store: Store, monkeypatch: pytest.MonkeyPatch):
    """Its clock is two hours ahead, and it opens the store between two runs."""
    real = time.time

    def entries() -> Iterator[NewRun]:
        for spec in SPECS:
            with monkeypatch.context() as patch:
                patch.setattr(time, "time", lambda: real() + 2 * HOUR)
                Store(store.root, create=True)
            yield NewRun(verified(spec.id, toy.files_of(spec)))

    assert store.commit_all(entries()) == [True] * 3


def test_an_import_may_take_longer_than_a_dead_one_is_left(store: Store):
    """Each run takes two hours to stage."""

    def entries() -> Iterator[NewRun]:
        for spec in SPECS:
            yield NewRun(verified(spec.id, toy.files_of(spec)))
            for path in (store.root / "staging").rglob("*"):
                past = path.stat().st_mtime - 0.9 * HOUR
                os.utime(path, (past, past))
            Store(store.root, create=True)

    assert store.commit_all(entries()) == [True] * 3


ODD = [
    "{}",
    "",
    '{"pid": 1}',
    *(
        json.dumps({"host": "n1", "pid": 1, "job": "", "since": 0.0, "fraction": 0.5} | fields)
        for fields in (
            {"fraction": float("inf")},
            {"fraction": 10**400},
            {"since": None},
            {"pid": 10**30, "host": platform.node()},
            {"pid": 2**31, "host": platform.node()},
            {"job": "\x1b[2J"},
            {"host": "\x1b]0;title\x07"},
        )
    ),
]


@pytest.mark.parametrize("content", ODD, ids=range(len(ODD)))
def test_a_note_of_any_shape_is_no_sign_of_life_and_nothing_obeys_it(store: Store, content: str):
    note(store).write_text(content)
    found = status(store.root)
    assert found["runs"] == {SPECS[0].id: {"state": "interrupted"}}
    assert all(line.isprintable() for line in lines(found))


@pytest.mark.parametrize(
    ("folder", "content"),
    [
        ("wanted", {"ID": {"artifact": "\x1b[2J", "seconds": 1.0}}),
        ("wanted", {"ID": {"artifact": "toy/table1", "seconds": float("inf")}}),
        ("jobs", {"engine": "slurm", "job": "\x1b[2J"}),
    ],
)
def test_a_plan_or_job_of_any_shape_is_refused_in_words(store: Store, folder: str, content: dict[str, Any]):
    (store.root / folder).mkdir()
    (store.root / folder / "x.json").write_text(json.dumps(content).replace("ID", SPECS[0].id))
    with pytest.raises(StoreError, match="delete it"):
        status(store.root)
