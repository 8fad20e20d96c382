"""Runs on disk: a folder that explains itself, committed once by a rename and verified whenever it is read.

    STORE/runs/ID/       spec.json environment.json outcome.json *.parquet checksums.json     finished
    STORE/partial/ID/    execution.json, checkpoint                                            under way
    STORE/locks/ID       held (flock) by the process that computes ID; freed by the kernel when it dies
    STORE/staging/       folders being written, each renamed into runs/ when it is complete
    STORE/refused/       folders that failed to verify, kept for inspection

A finished folder is never modified. Files from elsewhere are data: JSON and parquet are parsed, nothing is
unpickled, and no name leads out of the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.spec import ID_LENGTH, SCHEMA, RunSpec

if TYPE_CHECKING:
    import pandas as pd

STATUSES = ("finished", "diverged", "out of budget")
CHECKSUMS = "checksums.json"
REQUIRED = {"spec.json", "environment.json", "outcome.json"}
ABANDONED = 3600.0  # seconds after which a staging folder is taken to be a dead process's


class StoreError(ValueError):
    """A store that cannot be read or written as asked."""


class DamagedRun(StoreError):
    """A run folder that does not verify: truncated, edited, or not what its name says."""


@dataclass(frozen=True)
class Outcome:
    """What an experiment returns. ``results`` are plain named numbers; ``curves`` are tables by name."""

    status: str
    results: Mapping[str, Any] = field(default_factory=dict)
    curves: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"outcome status must be one of {STATUSES}, not {self.status!r}")


@dataclass(frozen=True)
class Run:
    """A verified finished run."""

    id: str
    files: Mapping[str, bytes] = field(repr=False)

    @cached_property
    def spec(self) -> RunSpec:
        return RunSpec.from_json(self.files["spec.json"].decode())

    @cached_property
    def environment(self) -> dict[str, Any]:
        return json.loads(self.files["environment.json"])

    @cached_property
    def outcome(self) -> dict[str, Any]:
        return json.loads(self.files["outcome.json"])

    @property
    def status(self) -> str:
        return self.outcome["status"]

    @property
    def results(self) -> dict[str, Any]:
        return self.outcome["results"]

    @property
    def curves(self) -> list[str]:
        """Names of the tables there are."""
        return sorted(name.removesuffix(".parquet") for name in self.files if name.endswith(".parquet"))

    def curve(self, name: str) -> pd.DataFrame:
        """The table ``name``; raises KeyError naming the tables there are."""
        import pandas as pd

        try:
            return pd.read_parquet(io.BytesIO(self.files[f"{name}.parquet"]))
        except KeyError:
            raise KeyError(f"run {self.id} has no curve {name!r}; it has {self.curves}") from None


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def seal(files: Mapping[str, bytes]) -> bytes:
    """The checksum file of a run folder with these files."""
    return json.dumps({"schema": SCHEMA, "files": {n: digest(files[n]) for n in sorted(files)}}, indent=1).encode()


def plain_name(name: str) -> bool:
    """Whether a file name is a single visible name that leads nowhere else."""
    return bool(name) and not name.startswith(".") and not any(c in name for c in "/\\:\0")


def verified(run_id: str, files: Mapping[str, bytes]) -> Run:
    """The run made of these files, checksum file included. Raises DamagedRun saying what is wrong with it."""
    try:
        run = Run(run_id, files)
        if wrong := _defect(run):
            raise DamagedRun(f"run {run_id}: {wrong}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise error if isinstance(error, DamagedRun) else DamagedRun(f"run {run_id}: {error}") from error
    return run


def _defect(run: Run) -> str:
    """What is wrong with a run's files, or nothing. Raises whatever a file of the wrong shape leads to."""
    files = run.files
    if CHECKSUMS not in files:
        return f"{CHECKSUMS} is missing"
    sealed = json.loads(files[CHECKSUMS])
    if sealed["schema"] != SCHEMA:
        return f"schema {sealed['schema']!r}, where this version reads {SCHEMA}"
    sums = sealed["files"]
    present = set(files) - {CHECKSUMS}
    if present != set(sums):
        return f"files {sorted(present ^ set(sums))} are missing or foreign"
    if missing := REQUIRED - present:
        return f"{sorted(missing)} missing"
    for name, expected in sums.items():
        if not plain_name(name):
            return f"{name!r} is not a file name"
        if digest(files[name]) != expected:
            return f"{name} does not match its checksum"
    if run.spec.id != run.id:
        return f"its specification belongs to run {run.spec.id}"
    if run.status not in STATUSES:
        return f"unknown outcome {run.status!r}"
    if not isinstance(run.results, dict) or not isinstance(run.environment, dict):
        return "results and environment must be mappings"
    return ""


def encode(spec: RunSpec, environment: Mapping[str, Any], outcome: Outcome) -> dict[str, bytes]:
    """The files of a run folder, checksum file included."""
    files = {
        "spec.json": spec.to_json().encode(),
        "environment.json": json.dumps(environment, indent=1, sort_keys=True).encode(),
        "outcome.json": json.dumps(
            {"status": outcome.status, "note": outcome.note, "results": dict(outcome.results)},
            indent=1,
            allow_nan=True,
        ).encode(),
    }
    for name, table in outcome.curves.items():
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False, compression="zstd")
        files[f"{name}.parquet"] = buffer.getvalue()
    return files | {CHECKSUMS: seal(files)}


def is_run_id(name: str) -> bool:
    """Whether a name is the id of a run: the hex digits that ``RunSpec.id`` gives."""
    return len(name) == ID_LENGTH and all(c in "0123456789abcdef" for c in name)


class Store:
    """A folder of runs. Any number of processes may read and write it at once.

    Raises StoreError when there is none at ``root`` or, with ``create``, when it cannot be written.
    """

    def __init__(self, root: Path, *, create: bool = False):
        self.root = Path(root)
        if create:
            try:
                for part in ("runs", "partial", "locks", "staging"):
                    (self.root / part).mkdir(parents=True, exist_ok=True)
                probe = self.root / "staging" / f"probe-{os.urandom(4).hex()}"
                probe.touch()
                probe.unlink()
                self._sweep()
            except OSError as error:
                raise StoreError(f"cannot write a store at {self.root}: {error.strerror}") from error
        elif not (self.root / "runs").is_dir():
            raise StoreError(f"no store at {self.root}: run something first, or name another with --store")

    def _sweep(self) -> None:
        """Remove what processes that died while storing a run left behind."""
        with os.scandir(self.root / "staging") as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if time.time() - entry.stat().st_mtime > ABANDONED:
                        shutil.rmtree(entry.path, ignore_errors=True)

    def ids(self) -> set[str]:
        """Names of all finished runs, unverified."""
        with os.scandir(self.root / "runs") as entries:
            return {entry.name for entry in entries if is_run_id(entry.name)}

    def has(self, run_id: str) -> bool:
        """Whether something is stored under this id, verified or not."""
        return os.path.lexists(self.root / "runs" / run_id)

    def read(self, run_id: str) -> Run:
        """The verified run; raises KeyError when there is none, DamagedRun when it does not verify."""
        return verified(run_id, self.files(run_id))

    def files(self, run_id: str) -> dict[str, bytes]:
        """All files of a run folder, unverified. Raises KeyError when there is no such run, DamagedRun when
        it is not a folder of readable plain files.
        """
        folder = self.root / "runs" / run_id
        try:
            with os.scandir(folder) as entries:
                names = [(e.name, e.is_file(follow_symlinks=False)) for e in entries]
            if odd := [name for name, plain in names if not plain]:
                raise DamagedRun(f"run {run_id}: {odd[0]!r} is not a plain file")
            return {name: (folder / name).read_bytes() for name, _ in names}
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not self.has(run_id):
                raise KeyError(run_id) from None
            raise DamagedRun(f"run {run_id}: {error.strerror}") from error

    def commit(self, run_id: str, files: Mapping[str, bytes]) -> bool:
        """Store a run in one step: afterwards it is there whole, or not at all.

        Returns False when the run was there already. Raises DamagedRun when the files do not verify, StoreError
        when the disk is full or read-only.
        """
        verified(run_id, files)
        target = self.root / "runs" / run_id
        staging = self.root / "staging" / f"{run_id}-{os.urandom(6).hex()}"
        try:
            staging.mkdir(parents=True)
            for name, data in files.items():
                with open(staging / name, "wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
            _sync_folder(staging)
            try:
                os.rename(staging, target)
            except OSError:
                if not target.is_dir():
                    raise
                return False
            _sync_folder(target.parent)
        except OSError as error:
            raise StoreError(f"could not store run {run_id} in {self.root}: {error.strerror}") from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return True

    def refuse(self, run_id: str) -> Path:
        """Move a damaged run folder aside so that the run can be computed again; returns where it went."""
        refused = self.root / "refused"
        refused.mkdir(exist_ok=True)
        target = refused / f"{run_id}-{os.urandom(4).hex()}"
        os.rename(self.root / "runs" / run_id, target)
        return target

    def partial(self, run_id: str) -> Path:
        """Where the checkpoint of an unfinished run lives."""
        return self.root / "partial" / run_id

    def forget(self, run_id: str) -> None:
        """Remove what an unfinished run has left. Only the process that has claimed the run may do this."""
        shutil.rmtree(self.partial(run_id), ignore_errors=True)

    @contextlib.contextmanager
    def claim(self, run_id: str) -> Iterator[bool]:
        """Hold the right to compute a run; yields False when another process holds it.

        The lock belongs to the process: if it is killed, the kernel frees it.
        """
        with open(self.root / "locks" / run_id, "w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            try:
                yield True
            finally:
                fcntl.flock(handle, fcntl.LOCK_UN)

    def busy(self, run_id: str) -> bool:
        """Whether another process is computing a run at this moment."""
        with self.claim(run_id) as mine:
            return not mine


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
