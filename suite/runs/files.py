"""Files that appear whole or not at all, and their removal."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that replaces what is there in one step, synced first: a power cut leaves the old or the new."""
    staging = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with open(staging, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(staging, path)
        sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            staging.unlink()


def twice_if_stale(read: Callable[[], Found]) -> Found:
    """What ``read`` returns, called again where it met a stale handle, which a network's file system renews."""
    try:
        return read()
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
    return read()


def check_writable(folder: Path) -> None:
    """Raise ValueError where no file could be written below ``folder``, which need not exist yet; leaves nothing."""
    try:
        with tempfile.TemporaryFile(dir=nearest(folder)):
            pass
    except OSError as error:
        raise ValueError(f"could not write {folder}: {error.strerror}") from error


def check_file(path: Path) -> None:
    """Raise ValueError where ``path`` could not be written as a file; leaves nothing."""
    if path.is_dir():
        raise ValueError(f"could not write {path}: it is a folder; name a file")
    check_writable(path.parent)


def nearest(folder: Path) -> Path:
    """The folder itself, or the closest of those above it that is there."""
    return next(part for part in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(part))


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """Remove a folder as far as can be, or a file, which may be gone already."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
