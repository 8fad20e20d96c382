"""Before a power cut: what is renamed into place has been flushed to disk first, so that a name never comes alone."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import toy

from suite.data.cache import cached
from suite.experiment import Context
from suite.files import write_whole
from suite.papers.catalogue import experiment
from suite.runner.execute import RunnerConfig, execute
from suite.runs.archive import Archive, export, merge
from suite.runs.comparison import relation
from suite.runs.run import write
from suite.runs.store import Store
from suite.training import checkpoint, machine_code


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names that files and folders were renamed to, each with what of it had not been flushed as it was."""
    flushed: set[tuple[int, int, int]] = set()
    found: dict[str, list[str]] = {}
    state = lambda about: (about.st_ino, about.st_size, about.st_mtime_ns)
    flush = os.fsync

    def fsync(handle: int) -> None:
        flush(handle)
        flushed.add(state(os.fstat(handle)))

    def watched(real):
        def rename(origin: os.PathLike, target: os.PathLike) -> None:
            parts = [Path(origin), *Path(origin).rglob("*")]
            late = [part.name for part in parts if state(part.stat()) not in flushed]
            real(origin, target)
            found.setdefault(Path(target).name, []).extend(late)

        return rename

    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("replace", "rename"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    return found


def test_a_run_its_checkpoint_and_its_exports_are(tmp_path: Path, renamed, papers, monkeypatch: pytest.MonkeyPatch):
    """The run is interrupted and gone on with, exported, and taken into another store."""
    spec = toy.digits(updates=6, evaluate={"every": 3})
    around = RunnerConfig(tmp_path / "store", checkpoint_seconds=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(Context, "late", property(lambda context: (context.folder / checkpoint.NAME).exists()))
        assert execute(spec, experiment, around).state == "late"
    assert execute(spec, experiment, around).state == "stored"
    export({spec.id: Store(around.store).files(spec.id)}, tmp_path / "runs.zip", {})
    merge(Archive(tmp_path / "runs.zip"), Store(tmp_path / "other", create=True), partial(relation, timed=False))
    assert {"begun.json", "execution.json", "progress.json", "checkpoint", "runs.zip", spec.id} <= set(renamed)
    assert {name: late for name, late in renamed.items() if late} == {}


def test_what_else_is_kept_is(tmp_path: Path, renamed, monkeypatch: pytest.MonkeyPatch):
    write_whole(tmp_path / "note", b"")
    write(tmp_path / "figure.svg", b"")
    cached(tmp_path, "pictures", lambda: (np.zeros(1, np.uint8), np.zeros(1)))
    monkeypatch.setattr(machine_code, "compiler", lambda: ("c++", ""))
    monkeypatch.setattr(machine_code, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr("subprocess.run", lambda command, **_: Path(command[-1]).write_bytes(b"machine code"))
    (tmp_path / "code.cpp").write_text("")
    library = machine_code.Source(tmp_path / "code.cpp").library({}, lambda path, build: path.name)
    assert {"note", "figure.svg", "pictures.inputs.npy", library} <= set(renamed)
    assert {name: late for name, late in renamed.items() if late} == {}
