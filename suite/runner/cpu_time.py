"""Processor seconds that a run has taken so far, over every session that worked on it, beside its checkpoint."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from suite.runs.files import write_whole
from suite.runs.notes import NUMBER, read_note

CPU_TIME_FILE = "spent.json"  # in the folder of a run under way


def processor_seconds() -> float:
    """Of this process, all its threads, and the processes that it has waited for."""
    return sum(os.times()[:4])


def charged_seconds(folder: Path) -> float:
    """Processor seconds charged to the run in ``folder``; none where nothing readable says so."""
    with contextlib.suppress(OSError):
        if note := read_note(folder / CPU_TIME_FILE, {"processor_seconds": NUMBER}):
            return float(note["processor_seconds"])
    return 0.0


def charge(folders: Sequence[Path], seconds: float) -> None:
    """Add to each run its share of what was spent on all of them together; where that fails, the run goes on."""
    for folder in folders:
        total = charged_seconds(folder) + seconds / len(folders)
        with contextlib.suppress(OSError):
            write_whole(folder / CPU_TIME_FILE, json.dumps({"processor_seconds": total}).encode())


class Meter:
    """Charges what was spent since it was made or last read. What a kill interrupts is lost."""

    def __init__(self) -> None:
        self.read = processor_seconds()

    def charge(self, folders: Sequence[Path]) -> None:
        """To each of these runs its share."""
        before, self.read = self.read, processor_seconds()
        charge(folders, self.read - before)
