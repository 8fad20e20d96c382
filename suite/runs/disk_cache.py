"""Small results kept in the user's cache folder, each for one state of what it follows from, with their SHA-256."""

from __future__ import annotations

import hashlib
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
        write_whole(where, hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
    except OSError:
        return


def recall(where: Path) -> bytes | None:
    """What was kept there; None where nothing was, or where it is not what was written."""
    try:
        digest, _, data = where.read_bytes().partition(b"\n")
    except OSError:
        return None
    return data if digest == hashlib.sha256(data).hexdigest().encode() else None


def _forget(folder: Path) -> None:
    if folder.exists():
        for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)[STATES - 1 :]:
            shutil.rmtree(path, ignore_errors=True)
