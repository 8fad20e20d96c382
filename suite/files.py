"""Files that appear whole or not at all, and their removal.

Small JSON files beside runs under way, read with their fields checked: they may be torn or of another age.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

Found = TypeVar("Found")
ABANDONED = 3600.0  # seconds after which a file or folder that is being written is taken to be a dead process's


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write that replaces ``path`` in one step, synced first: a power cut leaves the old or the new."""
    staging = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with open(staging, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(staging, path)
        sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            staging.unlink()


def write_whole(path: Path, *parts: bytes) -> None:
    """Write ``parts`` to a file that appears whole or not at all."""
    with whole(path) as stream:
        stream.writelines(parts)


def sweep(paths: Iterable[Path], now: float) -> None:
    """Remove what processes left that died while they wrote; ``now`` is by the file system's clock."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError, PermissionError):  # gone, or another user's to remove
            if now - path.lstat().st_mtime > ABANDONED:
                remove(path)


def only_ours(path: Path) -> bool:
    """Whether a file or folder belongs to this user or root, and nobody else can change it or what is in it.

    Raises OSError.
    """
    found = path.stat()
    shut = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or found.st_mode & stat.S_ISVTX
    return found.st_uid in (os.geteuid(), 0) and bool(shut)


def private_folder(folder: Path, cure: str) -> Path:
    """The folder, made for this user alone where it is missing; this user's is closed where others can write it.

    Raises OSError, with a ``cure``, where it is another's.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not only_ours(folder) and folder.stat().st_uid == os.geteuid():
        folder.chmod(0o700)
    if not only_ours(folder):
        raise PermissionError(f"{folder} is another user's, or others can write it: {cure}")
    return folder


def now_in(folder: Path) -> float:
    """The time by the clock of a folder's file system, which its files carry and which need not be this machine's.

    Raises OSError where nothing can be written.
    """
    with tempfile.TemporaryFile(dir=folder) as probe:
        return os.fstat(probe.fileno()).st_mtime


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


def sync_folders(folders: Sequence[Path]) -> None:
    """Make folders of files, all on one file system, survive a power cut. Raises OSError where one is not written.

    A sync of a file costs a flush of the disk, and an import has a hundred thousand files: there the file system is
    synced once, as far as the system has a call for it.
    """
    if len(folders) > 1 and _sync_file_system(folders[0]):
        return
    for folder in folders:
        for path in folder.iterdir():
            with open(path, "rb") as stream:
                os.fsync(stream.fileno())
        sync_folder(folder)


def _sync_file_system(folder: Path) -> bool:
    """Write all that a folder's file system holds, by Linux's syncfs; False where there is none. Raises OSError."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None:
        return False
    handle = os.open(folder, os.O_RDONLY)
    try:
        if call(handle):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(handle)
    return True


def remove(path: Path) -> None:
    """Remove a folder as far as can be, or a file, which may be gone already."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


NUMBER = (int, float)
LARGEST = 1e18
LONGEST = 300  # characters of what is quoted

Fields = Mapping[str, type | tuple[type, ...]]


def read_note(path: Path, fields: Fields) -> dict[str, Any] | None:
    """The mapping that a file holds, or None where there is no file or what it holds does not fit.

    Args:
        path: The file.
        fields: The type of each field that the mapping must have; it may have others.

    Raises:
        OSError: The file is there and cannot be read now, so nobody knows what it holds.
    """
    try:
        found = json.loads(twice_if_stale(path.read_bytes))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError, RecursionError):
        return None
    return found if fits(found, fields) else None


def fits(found: Any, fields: Fields) -> bool:
    """Whether a value is a mapping with these fields, each of its type.

    A number is no truth value and below 1e18 in size. A text is printable, so that a terminal never obeys it.
    """
    return isinstance(found, dict) and all(name in found and _is(found[name], kind) for name, kind in fields.items())


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    if isinstance(value, bool) or not isinstance(value, kind):
        return isinstance(value, bool) and kind is bool
    if isinstance(value, int | float):
        return abs(value) < LARGEST
    return value.isprintable() if isinstance(value, str) else True


def shortened(text: str) -> str:
    """A text that quotes a file, which may be of any length, at a length that a person reads."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text):,} characters)"
