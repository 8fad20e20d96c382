"""Small results kept in the user's cache folder, each for one state of what it follows from."""

from __future__ import annotations

import shutil
from pathlib import Path

from suite.data.catalogue import cache_folder
from suite.runs.files import write_whole

STATES = 3  # of each kind that are kept


def place(kind: str, state: str, name: str) -> Path:
    """Where a result called ``name`` lies, of that kind, for a digest of everything it follows from."""
    return cache_folder() / kind / state / name


def keep(where: Path, data: bytes) -> None:
    """Write what ``place`` named, and drop states before the last few. An unwritable folder only costs time."""
    folder = where.parent
    try:
        if not folder.exists():
            _forget(folder.parent)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(where, data)
    except OSError:
        return


def _forget(folder: Path) -> None:
    if folder.exists():
        for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)[STATES - 1 :]:
            shutil.rmtree(path, ignore_errors=True)
