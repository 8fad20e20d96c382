"""Workers that share a device with too little memory for all of them."""

from __future__ import annotations

import contextlib
import os
import time
from functools import partial
from pathlib import Path

import pytest

from suite.runner.packing import Pack, RunReport
from suite.runner.workers import WorkerPool
from suite.spec import RunSpec

NO_ROOM = "OutOfMemoryError: CUDA out of memory"


def on_a_small_device(pack: Pack, *, progress, folder: Path, room: int) -> list[RunReport]:
    """Holds one of ``room`` places for a while, or fails for lack of one. Who was here stays on record."""
    places = [folder / f"place-{i}" for i in range(room)]
    for place in places:
        with contextlib.suppress(FileExistsError):
            place.touch(exist_ok=False)
            (folder / f"{pack.specs[0].seed}-{os.getpid()}").touch()
            time.sleep(0.6)
            place.unlink()
            return [RunReport(spec, "stored", "finished") for spec in pack.specs]
    return [RunReport(spec, "failed", why=NO_ROOM) for spec in pack.specs]


def ended(folder: Path, workers: int, room: int, packs: int = 6) -> dict[int, RunReport]:
    wanted = [Pack((RunSpec("toy/run", {}, seed),)) for seed in range(packs)]
    with WorkerPool(workers, partial(on_a_small_device, folder=folder, room=room)) as pool:
        return {report.spec.seed: report for report in pool.compute(wanted, lambda run, fraction: None)}


@pytest.mark.processes
def test_runs_that_find_no_memory_beside_others_wait_for_them(tmp_path):
    found = ended(tmp_path, workers=4, room=2)
    assert {seed: report.state for seed, report in found.items()} == dict.fromkeys(range(6), "stored")
    assert len(list(tmp_path.glob("[0-9]*"))) == 6


@pytest.mark.processes
def test_a_run_that_finds_no_memory_alone_has_failed(tmp_path):
    found = ended(tmp_path, workers=2, room=0, packs=3)
    assert {report.why for report in found.values()} == {NO_ROOM}
    assert set(found) == {0, 1, 2}
