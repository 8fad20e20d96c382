"""What runs under way say of themselves: where, since when, how far, at what cost; beside their checkpoints.

``status`` reads these notes and never touches a claim, so that looking cannot get in a worker's way.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from suite.files import NUMBER, Fields, read_note, write_whole
from suite.runs.background import every

NOTE = "progress.json"
FAILURE = "failure.txt"  # the traceback of a run that failed
CPU_TIME_FILE = "spent.json"  # processor seconds over every session that worked on a run
FIELDS: Fields = {"host": str, "pid": int, "job": str, "since": NUMBER, "fraction": NUMBER}
PERIOD = 5.0  # seconds between two signs of life
PIDS = 2**31  # no system numbers its processes further
SILENT = 60.0  # seconds without one after which a run is taken to stand still


@contextlib.contextmanager
def present(folder: Path, fraction: Callable[[], float]) -> Iterator[None]:
    """Give signs of life of a run in the folder that it works in, and a last one when the block ends."""
    about = {"host": platform.node(), "pid": os.getpid(), "job": job(), "since": time.time()}

    def write(**more: bool) -> None:
        note = about | {"fraction": fraction()} | more
        with contextlib.suppress(OSError):  # a note that cannot be written is no failure
            write_whole(folder / NOTE, json.dumps(note).encode())

    write()
    try:
        with every(PERIOD, write, "presence"):
            yield
    finally:
        write(left=True)  # of a stored run there is no folder any more


def job() -> str:
    """The scheduler's name for this job; empty outside one."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array else os.environ.get("SLURM_JOB_ID", "")


def note_in(folder: Path) -> dict[str, Any] | None:
    """The last sign of life in a run's folder, with its time by the file system's clock as ``seen``."""
    with contextlib.suppress(OSError):
        if (found := read_note(folder / NOTE, FIELDS)) and 0 < found["pid"] < PIDS:
            return {**found, "seen": (folder / NOTE).stat().st_mtime}
    return None


def at_work(note: Mapping[str, Any], now: float) -> bool:
    """Whether those who gave this sign of life still work, as far as it and this host's processes tell."""
    if note.get("left") or now - note["seen"] >= SILENT:
        return False
    return note.get("host") != platform.node() or psutil.pid_exists(note["pid"])


def processor_seconds() -> float:
    """Of this process, all its threads, and the processes that it has waited for."""
    return sum(os.times()[:4])


def charged_seconds(folder: Path) -> float:
    """Processor seconds charged to the run in ``folder``; none where nothing readable says so."""
    with contextlib.suppress(OSError):
        if note := read_note(folder / CPU_TIME_FILE, {"processor_seconds": NUMBER}):
            return float(note["processor_seconds"])
    return 0.0


def charge(folder: Path, seconds: float) -> None:
    """Add to what a run has cost; where that cannot be written, the run goes on."""
    with contextlib.suppress(OSError):
        total = {"processor_seconds": charged_seconds(folder) + seconds}
        write_whole(folder / CPU_TIME_FILE, json.dumps(total).encode())
