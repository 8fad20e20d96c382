"""What runs under way say of themselves: where, since when, how far; written beside their checkpoints.

``status`` reads these notes and never touches a claim, so that looking cannot get in a worker's way.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suite.runs.files import write_whole

NOTE = "progress.json"
PERIOD = 5.0  # seconds between two signs of life
SILENT = 60.0  # seconds without one after which a run is taken to stand still


class Presence:
    """Signs of life of some runs, by the folder each works in, until the block ends. Use as a context manager."""

    def __init__(self, folders: Mapping[str, Path], fractions: Mapping[str, float]):
        self.folders, self.fractions = dict(folders), fractions
        self.about = {"host": platform.node(), "pid": os.getpid(), "job": job(), "since": time.time()}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, name="presence", daemon=True)

    def __enter__(self) -> Presence:
        self.write()
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self.thread.join()

    def _run(self) -> None:
        while not self.ended.wait(PERIOD):
            self.write()

    def write(self) -> None:
        """One sign of life of each run that is still there; a note that cannot be written is no failure."""
        for run_id, folder in self.folders.items():
            note = self.about | {"fraction": self.fractions.get(run_id, 0.0)}
            with contextlib.suppress(OSError):
                write_whole(folder / NOTE, json.dumps(note).encode())


def job() -> str:
    """The scheduler's name for this job; empty outside one."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array else os.environ.get("SLURM_JOB_ID", "")


def note_in(folder: Path) -> dict[str, Any] | None:
    """The last sign of life in a run's folder, with its time by the file system's clock as ``seen``."""
    try:
        found = json.loads((folder / NOTE).read_bytes())
        return {**found, "seen": (folder / NOTE).stat().st_mtime}
    except (OSError, ValueError, TypeError):
        return None
