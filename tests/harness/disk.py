"""A disk that fails on request and whose power can be cut: the Python side of disk.c.

``preload`` starts the program again under the library. ``Disk`` counts, fails and records the operations below one
folder. ``Replay`` goes through a record and says what a power cut after each operation leaves.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_name("disk.c")
LIBRARY = "SGD_DISK_LIBRARY"
KINDS = ("open", "read", "write", "fsync", "rename")
ERRORS = {
    "open": (errno.ENOSPC, errno.EIO, errno.ESTALE, errno.EMFILE),
    "read": (errno.EIO, errno.ESTALE),
    "write": (errno.ENOSPC, errno.EIO, errno.ESTALE),
    "fsync": (errno.EIO, errno.ENOSPC, errno.ESTALE),
    "rename": (errno.ENOSPC, errno.EIO, errno.ESTALE),
}


def preload() -> None:
    """Start this program again under the library, built in a folder of its own; return where that has been done."""
    if LIBRARY in os.environ:  # what is loaded stays, and other programs need it not
        shutil.rmtree(os.environ.pop(LIBRARY))
        del os.environ["LD_PRELOAD"]
        return
    folder = tempfile.mkdtemp()
    library = f"{folder}/disk.so"
    subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl", "-lpthread"], check=True)
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {LIBRARY: folder, "LD_PRELOAD": library})


class Disk:
    """The operations below one folder, in this process and those forked from it."""

    def __init__(self) -> None:
        self.calls = ctypes.CDLL(None)
        self.calls.disk_seen.restype = self.calls.disk_failed.restype = ctypes.c_long
        self.calls.disk_fail.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_int]

    def watch(self, folder: Path, log: Path | None = None) -> None:
        """Count what is done below a folder from now on, and record what changes it."""
        self.calls.disk_watch(os.fsencode(folder.resolve()), os.fsencode(log or ""))

    def rest(self) -> None:
        """Watch nothing."""
        self.calls.disk_watch(b"", b"")

    def fail(self, kind: str, at: int, times: int, error: int) -> None:
        """Let the ``at``-th operation of a kind fail, and the ``times - 1`` that follow."""
        self.calls.disk_fail(KINDS.index(kind), at, times, error)

    def seen(self, kind: str) -> int:
        return self.calls.disk_seen(KINDS.index(kind))

    def failed(self) -> int:
        """How many operations have failed since the folder is watched."""
        return self.calls.disk_failed()

    def mark(self, text: str) -> None:
        """Put a word among the recorded operations."""
        self.calls.disk_mark(text.encode())


class Operation(NamedTuple):
    """A recorded operation; paths are relative to the watched folder."""

    kind: str
    offset: int
    path: str
    other: str
    data: bytes


def operations(log: Path) -> Iterator[Operation]:
    """What a log holds, in its order."""
    left = log.read_bytes()
    while left:
        kind, offset, size, left = left.split(b" ", 3)
        path, other, left = left.split(b"\0", 2)
        yield Operation(kind.decode(), int(offset), os.fsdecode(path), os.fsdecode(other), left[: int(size)])
        left = left[int(size) :]


@dataclass
class File:
    """The bytes of a file as programs see them, and as the disk has them."""

    data: bytes = b""
    synced: bytes = b""

    def sync(self) -> None:
        self.synced = self.data


@dataclass
class Folder:
    """The names in a folder as programs see them, and as the disk has them."""

    names: dict[str, File | Folder] = field(default_factory=dict)
    synced: dict[str, File | Folder] = field(default_factory=dict)

    def sync(self) -> None:
        self.synced = dict(self.names)


State = dict[str, bytes | None]  # what lies at a path: a file's bytes, or a folder
LOSSES = {
    "lost": lambda file: file.synced,  # what was not synced is not there
    "torn": lambda file: file.data if file.data == file.synced else file.data[: len(file.data) // 2],
    "zeros": lambda file: file.data if file.data == file.synced else bytes(len(file.data)),
}


class Replay:
    """A folder to which recorded operations are done again, and what the disk has of it after each."""

    def __init__(self, start: Path):
        self.root = _read(start)

    def apply(self, done: Operation) -> None:
        """Do one operation. Raises KeyError for a path that is not there."""
        if done.kind == "A":
            _sync_all(self.root)
            return
        folder, name = self._place(done.path)
        there = folder.names.get(name) if name else folder
        if done.kind == "D":
            folder.names[name] = Folder()
        elif done.kind in "CT":
            if there is None:
                there = folder.names[name] = File()
            if done.kind == "T" and isinstance(there, File):
                there.data = b""
        elif done.kind == "U":
            del folder.names[name]
        elif done.kind in "RH":
            other, new_name = self._place(done.other)
            other.names[new_name] = folder.names[name]
            if done.kind == "R":
                del folder.names[name]
        elif there is None:
            raise KeyError(done.path)
        elif done.kind == "S":
            there.sync()
        elif isinstance(there, File):  # W or L
            before = there.data.ljust(done.offset, b"\0")
            after = before[done.offset + len(done.data) :] if done.kind == "W" else b""
            there.data = before[: done.offset] + done.data + after

    def _place(self, path: str) -> tuple[Folder, str]:
        """The folder that holds a path's last name, and that name."""
        *parents, name = path.split("/")
        folder = self.root
        for part in parents:
            found = folder.names[part]
            assert isinstance(found, Folder), path
            folder = found
        return folder, name

    def states(self) -> Iterator[State]:
        """What a power cut may leave now: every name and no unsynced byte, torn files, zeros; only synced names."""
        for loss in LOSSES.values():
            yield dict(_walk(self.root, "", "names", loss))
        yield dict(_walk(self.root, "", "synced", LOSSES["lost"]))


def _read(path: Path) -> Folder:
    """A folder on the real disk, all of it synced."""
    names: dict[str, File | Folder] = {}
    for part in path.iterdir():
        names[part.name] = _read(part) if part.is_dir() else File(part.read_bytes(), part.read_bytes())
    return Folder(names, dict(names))


def _sync_all(node: File | Folder) -> None:
    node.sync()
    for part in node.names.values() if isinstance(node, Folder) else ():
        _sync_all(part)


def _walk(folder: Folder, path: str, which: str, loss) -> Iterator[tuple[str, bytes | None]]:
    for name, part in getattr(folder, which).items():
        if isinstance(part, Folder):
            yield f"{path}{name}", None
            yield from _walk(part, f"{path}{name}/", which, loss)
        else:
            yield f"{path}{name}", loss(part)


def lay(state: State, root: Path) -> None:
    """Write a state into an empty folder."""
    for path, data in state.items():
        if data is None:
            (root / path).mkdir(parents=True, exist_ok=True)
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)


def names() -> list[str]:
    """The errors that operations fail with, as the system calls them."""
    return sorted({errno.errorcode[number] for numbers in ERRORS.values() for number in numbers})
