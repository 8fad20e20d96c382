"""The folder of runs: each is a folder that explains itself, committed once by a rename (see ``suite.runs.run``).

    STORE/runs/ID/       spec.json environment.json outcome.json *.parquet checksums.json     finished
    STORE/partial/ID/X/  execution.json, checkpoint of the claim X                             under way
    STORE/locks/         held by the process that computes a run; see ``suite.runs.lease``
    STORE/staging/       folders being written, each renamed into runs/ when it is complete
    STORE/refused/       folders that failed to verify, kept for inspection
    STORE/contested/     other versions of stored runs that an import brought, whole; see ``suite.runs.comparison``

A finished folder is never modified.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from glob import glob
from pathlib import Path
from typing import NamedTuple

from suite.files import now_in, sweep, sync_folder, sync_folders, twice_if_stale
from suite.runs.lease import Lease, Locks
from suite.runs.run import CHECKSUMS, DamagedRun, Run, StoreError, UnreadableRun, digest, is_run_id, verified


class NewRun(NamedTuple):
    """A run to be stored: ``replaces`` what stands there damaged, or ``contests`` it and is kept beside it."""

    run: Run
    replaces: bool = False
    contests: bool = False


class Store:
    """A folder of runs. Any number of processes may read and write it at once.

    Raises StoreError when there is none at ``root`` or, with ``create``, when it cannot be written.
    """

    def __init__(self, root: Path, *, create: bool = False):
        self.root = Path(root)
        self.locks = Locks(self.root / "locks", self.root / "partial")
        if create:
            try:
                for part in ("runs", "partial", "locks", "staging"):
                    (self.root / part).mkdir(parents=True, exist_ok=True)
                staging = self.root / "staging"
                sweep(staging.iterdir(), now_in(staging))
            except OSError as error:
                raise StoreError(f"cannot write a store at {self.root}: {error.strerror}") from error
        elif not (self.root / "runs").is_dir():
            if self.root.is_file():
                raise StoreError(f"{self.root} is a file, no folder of runs; `sgd-suite merge` takes exports in")
            raise StoreError(f"no store at {self.root}: run something first, or name another with --store")

    def ids(self) -> set[str]:
        """Names of all finished runs, unverified."""
        with os.scandir(self.root / "runs") as entries:
            return {entry.name for entry in entries if is_run_id(entry.name)}

    def has(self, run_id: str) -> bool:
        """Whether something is stored under this id, verified or not. Raises UnreadableRun where nobody can tell."""
        try:
            twice_if_stale(lambda: os.lstat(self.root / "runs" / run_id))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise UnreadableRun(f"run {run_id}", error) from error
        return True

    def read(self, run_id: str) -> Run:
        """The verified run; raises KeyError when there is none, DamagedRun or UnreadableRun as ``files``."""
        return verified(run_id, self.files(run_id))

    def files(self, run_id: str) -> dict[str, bytes]:
        """All files of a run folder, unverified.

        Raises KeyError when there is no such run, DamagedRun when it is not a folder of plain files, and
        UnreadableRun when it may be one and the system does not read it.
        """
        try:
            return _files(run_id, self.root / "runs" / run_id)
        except FileNotFoundError as error:
            if not self.has(run_id):
                raise KeyError(run_id) from None
            raise DamagedRun(f"run {run_id}: {error.strerror}") from error

    def versions(self, run_id: str) -> list[Run]:
        """The run as ``read`` gives it, then the other versions that were imported; raises as ``read``."""
        others = sorted((self.root / "contested").glob(f"{run_id}-*"))
        return [self.read(run_id), *(verified(run_id, _files(run_id, folder)) for folder in others)]

    def commit(self, run_id: str, files: Mapping[str, bytes]) -> bool:
        """Store a run in one step: afterwards it is there whole, or not at all.

        Returns False when the run was there already. Raises DamagedRun when the files do not verify, StoreError
        when the disk is full or read-only.
        """
        return self.commit_all([NewRun(verified(run_id, files))]) == [True]

    def commit_all(self, entries: Iterable[NewRun]) -> list[bool]:
        """Store all entries or none: each is written and synced before the first appears under its name.

        Returns for each whether it is new; another process may have stored a run meanwhile. Raises as ``commit``,
        and whatever ``entries`` raises.
        """
        staged: list[tuple[Path, Path, bool]] = []  # folder, where it will stand, whether it replaces what is there
        moves: list[tuple[Path, Path]] = []  # (from, to), made so far
        new = []
        run_id = "of an import"
        # One folder for all: each run that is staged in it shows that its process still lives (see ``sweep``).
        staging = self.root / "staging" / os.urandom(8).hex()
        try:
            for entry in entries:
                run_id = entry.run.id
                staged.append(self._stage(entry, staging))
            sync_folders([folder for folder, _, _ in staged])
            for folder, target, replaces in staged:
                if replaces and os.path.lexists(target):
                    moves.append(self._move(target, self._refused(target.name)))
                try:
                    moves.append(self._move(folder, target))
                    new.append(True)
                except OSError:
                    if not target.is_dir():
                        raise
                    new.append(False)
            for parent in {target.parent for _, target, _ in staged}:
                sync_folder(parent)
        except BaseException as error:
            for origin, target in reversed(moves):
                with contextlib.suppress(OSError):
                    os.rename(target, origin)
            if isinstance(error, OSError):
                raise StoreError(f"could not store run {run_id} in {self.root}: {error.strerror}") from error
            raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return new

    def _stage(self, entry: NewRun, staging: Path) -> tuple[Path, Path, bool]:
        """Write an entry into a folder of its own below ``staging``, where nobody looks for it."""
        run = entry.run
        target = self.root / "runs" / run.id
        if entry.contests:
            target = self.root / "contested" / f"{run.id}-{digest(run.files[CHECKSUMS])[:12]}"
            target.parent.mkdir(exist_ok=True)
        folder = staging / target.name
        folder.mkdir(parents=True)
        for name, data in run.files.items():
            (folder / name).write_bytes(data)
        return folder, target, entry.replaces

    @staticmethod
    def _move(origin: Path, target: Path) -> tuple[Path, Path]:
        os.rename(origin, target)
        return origin, target

    def _refused(self, name: str) -> Path:
        (self.root / "refused").mkdir(exist_ok=True)
        return self.root / "refused" / f"{name}-{os.urandom(4).hex()}"

    def refuse(self, run_id: str) -> Path:
        """Move a damaged run folder aside so that the run can be computed again; returns where it went."""
        return self._move(self.root / "runs" / run_id, self._refused(run_id))[1]

    def partial(self, run_id: str) -> Path:
        """Where an unfinished run lives: a folder for each claim on it, of which all but the last are leftovers."""
        return self.root / "partial" / run_id

    def begun(self, run_id: str = "*") -> list[Path]:
        """The folders of all claims on unfinished runs, or on one, without those that go while they are listed."""
        partial = self.root / "partial"
        return sorted(partial / found for found in glob(f"{run_id}/*", root_dir=partial))

    def claim(self, run_id: str) -> contextlib.AbstractContextManager[Lease | None]:
        """Hold the right to compute a run; None while another process holds it, until that one dies."""
        return self.locks.claim(run_id)

    def clear(self, run_id: str) -> None:
        """Remove what was begun of a run that is stored, unless somebody works on it. Raises OSError."""
        if self.partial(run_id).exists():
            with self.claim(run_id) as mine:
                if mine:
                    mine.open(lambda folder: False)
                    mine.forget()

    def busy(self, run_id: str) -> bool:
        """Whether another process is computing a run at this moment."""
        with self.claim(run_id) as mine:
            return mine is None


def _files(run_id: str, folder: Path) -> dict[str, bytes]:
    """All files of a folder.

    Raises FileNotFoundError where there is none, DamagedRun for any but plain files, and UnreadableRun where reading
    fails: that says nothing of what is stored.
    """

    def read() -> dict[str, bytes]:
        with os.scandir(folder) as entries:
            names = [(e.name, e.is_file(follow_symlinks=False)) for e in entries]
        if odd := [name for name, plain in names if not plain]:
            raise DamagedRun(f"run {run_id}: {odd[0]!r} is not a plain file")
        return {name: (folder / name).read_bytes() for name, _ in names}

    try:
        return twice_if_stale(read)
    except FileNotFoundError:
        raise
    except NotADirectoryError as error:
        raise DamagedRun(f"run {run_id}: {error.strerror}") from error
    except OSError as error:
        raise UnreadableRun(f"run {run_id}", error) from error
