"""Claims on runs: which process computes what, on one machine or on many.

Where the store lies on a local file system a claim is a lock of the kernel (flock), which frees it when the process
dies. Elsewhere (NFS, GPFS, Lustre: flock may be missing or mean one node only) it is a lease: a file that its holder
touches every few seconds. Whoever has watched a lease stand still for ``LEASE`` seconds of its own clock takes it
over; a dead process of the same machine is found out at once.

A lease is no fence: a holder that was only frozen may wake up beside its successor. That harms nothing. Every claim
has a folder of its own, which its successor renames and goes on in, so the former holder writes into nothing; and of
two finished copies of a run the store takes the first, whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from suite.files import now_in, remove

LEASE = 60.0  # seconds without a sign of life after which a claim may be taken over; the same for all of a store
BEATS = 6  # signs of life in that time
SHARED = ".leases"  # in the folder of locks: some process sees this store through a network
# File systems of one machine, where its kernel sees every lock
LOCAL = {
    "apfs",
    "bcachefs",
    "btrfs",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "jfs",
    "overlay",
    "ramfs",
    "tmpfs",
    "xfs",
    "zfs",
}


class Lease:
    """The right to compute a run, and the folder in which its holder works."""

    def __init__(self, root: Path, lost: Callable[[], bool]):
        self.root, self._lost = root, lost
        self.folder = root / secrets.token_hex(6)

    @property
    def lost(self) -> bool:
        """Whether another process is known to have taken the claim over."""
        return self._lost()

    @property
    def gone(self) -> bool:
        """Whether somebody has taken away what this holder worked on."""
        return self.lost or not self.folder.exists()

    def open(self, keep: Callable[[Path], bool]) -> Path:
        """The holder's folder: the newest of its predecessors' that ``keep`` accepts, or a new one.

        What else they left is removed. Raises OSError when nothing can be written.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        left = [path for path in self.root.iterdir() if path != self.folder]
        good = [path for path in left if path.is_dir() and keep(path)]
        if good and not self.folder.exists():
            os.rename(max(good, key=lambda path: path.stat().st_mtime_ns), self.folder)
        self.folder.mkdir(exist_ok=True)
        for path in left:
            remove(path)
        return self.folder

    def forget(self) -> None:
        """Remove what this holder has left, and nobody else's."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.root.rmdir()


class Locks:
    """The claims of one store: ``locks`` is the folder of lock files, ``partial`` that of runs under way."""

    def __init__(self, locks: Path, partial: Path):
        self.locks, self.partial = locks, partial
        self._watched: dict[str, Any] = {}  # leases of others, and since when they have stood still

    def kind(self) -> str:
        """How claims are held: ``flock`` or ``lease``. SGD_SUITE_LOCKS decides where it is set.

        Leases are for all as soon as one process needs them. Raises ValueError for another word.
        """
        named = os.environ.get("SGD_SUITE_LOCKS", "")
        if named not in ("", "flock", "lease"):
            raise ValueError(f"SGD_SUITE_LOCKS={named!r} must be flock or lease")
        shared = self.locks / SHARED
        if named != "flock" and not shared.exists() and (named or file_system(self.locks.resolve()) not in LOCAL):
            shared.touch()
        return "lease" if shared.exists() else "flock"

    def forsaken(self, run_id: str) -> bool:
        """Whether a lease is old by the file system's clock: worth watching, and no proof that its holder is dead."""
        with contextlib.suppress(OSError):
            touched = (self.locks / f"{run_id}.lease").stat().st_mtime
            return now_in(self.locks) - touched > lease_seconds()
        return False

    @contextlib.contextmanager
    def claim(self, run_id: str) -> Iterator[Lease | None]:
        """Hold the right to compute a run; yields None while another claim, of whichever process, has it."""
        with self._leased(run_id) if self.kind() == "lease" else self._flocked(run_id) as lost:
            yield None if lost is None else Lease(self.partial / run_id, lost)

    @contextlib.contextmanager
    def _flocked(self, run_id: str) -> Iterator[Callable[[], bool] | None]:
        handle = _lock_file(self.locks / run_id)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
                return
            try:
                yield lambda: False
            finally:
                fcntl.flock(handle, fcntl.LOCK_UN)
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def _leased(self, run_id: str) -> Iterator[Callable[[], bool] | None]:
        from filelock import LeaseSettingsMismatch, SoftFileLease, Timeout

        seconds = lease_seconds()
        path = self.locks / f"{run_id}.lease"
        # Only an object that has seen a lease before can tell that it stands still, so it is kept until it succeeds.
        lease = self._watched.pop(run_id, None) or SoftFileLease(
            path, lease_duration=seconds, heartbeat_interval=seconds / BEATS, thread_local=False
        )
        try:
            lease.acquire(timeout=0)
        except Timeout:
            self._watched[run_id] = lease
            _give_up_empty(path, seconds)
            yield None
            return
        except LeaseSettingsMismatch as error:
            raise ValueError(
                f"{path} is held with another lease than SGD_SUITE_LEASE_SECONDS={seconds:g}; all processes on a "
                "store must agree on it"
            ) from error
        try:
            yield lambda: lease.compromise is not None
        finally:
            lease.release()


def _give_up_empty(path: Path, seconds: float) -> None:
    """Let a lease that has long been empty be damaged: filelock takes over a damaged one, and an empty one never.

    A power cut leaves a file empty whose bytes were not synced. The byte goes into the file that was looked at, so a
    lease that somebody has put in its place meanwhile stays as it is.
    """
    with contextlib.suppress(OSError):  # gone, or another user's
        handle = os.open(path, os.O_WRONLY)
        try:
            found = os.fstat(handle)
            if found.st_size == 0 and now_in(path.parent) - found.st_mtime > seconds:
                os.write(handle, b"\0")
                os.utime(handle, ns=(found.st_atime_ns, found.st_mtime_ns))  # it looks as forsaken as before
        finally:
            os.close(handle)


def _lock_file(path: Path) -> int:
    """A descriptor of a lock file, made where there is none. Of another user's it can read only, which locks too."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:
        return os.open(path, os.O_RDONLY)


def lease_seconds() -> float:
    """SGD_SUITE_LEASE_SECONDS, or the default. Raises ValueError."""
    text = os.environ.get("SGD_SUITE_LEASE_SECONDS", str(LEASE))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86_400:
        raise ValueError(f"SGD_SUITE_LEASE_SECONDS={text!r} must be a number of seconds from 0.1 to 86400")
    return seconds


@functools.cache
def file_system(folder: Path) -> str:
    """The type of the file system below an absolute path, as the system calls it; empty when it does not say."""
    import psutil

    mounts = {part.mountpoint: part.fstype.lower() for part in psutil.disk_partitions(all=True)}
    for place in (folder, *folder.parents):
        if str(place) in mounts:
            return mounts[str(place)]
    return ""


PROBED = ("excludes", "frees", "renames_are_seen", "keeps_the_first")


def probe(root: Path) -> dict[str, Any]:
    """What two processes see of each other in a store at ``root``: plain values, ``ok`` when all of PROBED hold.

    One holds a claim while the other asks for it; the second renames a folder into place and the first looks.
    Raises OSError when nothing can be written there.
    """
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(dir=root, prefix=".probe-") as name:
        folder = Path(name)
        for part in ("locks", "partial", "staged"):
            (folder / part).mkdir()
        ask = lambda: subprocess.run(
            [sys.executable, "-m", "suite.runs.lease", name], capture_output=True, text=True, timeout=60, check=False
        ).stdout.strip()
        locks = Locks(folder / "locks", folder / "partial")
        with locks.claim("probe") as mine:
            held = ask()
        freed = ask()
        (folder / "target").mkdir()
        (folder / "target" / "whole").touch()
        try:
            os.rename(folder / "staged", folder / "target")
            guarded = False
        except OSError:
            guarded = True
        found = {
            "file_system": file_system(folder.resolve()) or "unknown",
            "claims": locks.kind(),
            "excludes": mine is not None and held == "busy",
            "frees": freed == "free",
            "renames_are_seen": (folder / "renamed" / "whole").exists(),
            "keeps_the_first": guarded,
        }
    return found | {"ok": all(found[name] for name in PROBED)}


def _probe_as_another(folder: Path) -> str:
    with Locks(folder / "locks", folder / "partial").claim("probe") as mine:
        if mine:
            (folder / "staged-by-another").mkdir()
            (folder / "staged-by-another" / "whole").touch()
            os.rename(folder / "staged-by-another", folder / "renamed")
    return "free" if mine else "busy"


if __name__ == "__main__":
    print(_probe_as_another(Path(sys.argv[1])))
