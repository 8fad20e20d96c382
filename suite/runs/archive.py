"""Runs as one file: ``export`` writes it, ``merge`` takes it in, and evidence is read from it in place.

The file is a zip of run folders with a manifest. Both ends verify every run; a file that does not verify is
refused whole, so a store never holds half of an import.
"""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from suite.runs.store import CHECKSUMS, DamagedRun, Run, Store, StoreError, digest, is_run_id, plain_name, verified
from suite.spec import SCHEMA

MANIFEST = "manifest.json"
EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed date: the same runs give the same bytes


class Runs(Protocol):
    """Anything that finished runs can be read from: a Store, an Archive, or several of them."""

    def ids(self) -> set[str]: ...

    def read(self, run_id: str) -> Run: ...


# What zipfile raises for a file that is damaged, encrypted or packed in a way it does not know
UNREADABLE = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, KeyError, RuntimeError)


class Archive:
    """The runs of one exported file, verified one by one as they are read.

    Raises StoreError for a file that ``export`` did not write, DamagedRun for names that are not a run's.
    """

    def __init__(self, path: Path):
        self.path = Path(path)
        try:
            self._zip = zipfile.ZipFile(self.path)
            manifest = json.loads(self._zip.read(MANIFEST))
            schema, self.sealed = manifest["schema"], dict(manifest["runs"])
        except (*UNREADABLE, TypeError) as error:
            raise StoreError(f"{self.path} is not an export of runs: {error}") from error
        if schema != SCHEMA:
            raise StoreError(f"{self.path} has schema {schema!r}; this version reads {SCHEMA}")
        self._names: dict[str, list[str]] = {}
        for name in self._zip.namelist():
            if name == MANIFEST:
                continue
            run_id, _, file = name.partition("/")
            if not is_run_id(run_id) or not plain_name(file):
                raise DamagedRun(f"{self.path}: {name!r} is not a file of a run")
            self._names.setdefault(run_id, []).append(file)
        if len(set(self._zip.namelist())) != len(self._zip.namelist()):
            raise DamagedRun(f"{self.path}: it holds two files of one name")
        if set(self._names) != set(self.sealed):
            raise DamagedRun(f"{self.path}: its runs are not those of its manifest")

    def ids(self) -> set[str]:
        return set(self.sealed)

    def files(self, run_id: str) -> dict[str, bytes]:
        """All files of a run, checked against the manifest. Raises KeyError or DamagedRun."""
        names = self._names[run_id]
        try:
            files = {name: self._zip.read(f"{run_id}/{name}") for name in names}
        except UNREADABLE as error:
            raise DamagedRun(f"run {run_id} in {self.path}: {error}") from error
        if digest(files.get(CHECKSUMS, b"")) != self.sealed[run_id]:
            raise DamagedRun(f"run {run_id} in {self.path}: its checksums are not the manifest's")
        return files

    def read(self, run_id: str) -> Run:
        return verified(run_id, self.files(run_id))


class Layered:
    """Several sources of runs seen as one; the first that holds a run answers for it."""

    def __init__(self, sources: Iterable[Runs]):
        self.sources = tuple(sources)

    def ids(self) -> set[str]:
        return set().union(*(source.ids() for source in self.sources))

    def read(self, run_id: str) -> Run:
        for source in self.sources:
            try:
                return source.read(run_id)
            except KeyError:
                continue
        raise KeyError(run_id)


def open_runs(path: Path) -> Runs:
    """A store folder, one exported file, or a folder with exported files. Raises StoreError for anything else."""
    path = Path(path)
    if path.is_file():
        return Archive(path)
    if (path / "runs").is_dir():
        return Store(path)
    if exported := sorted(path.glob("*.zip")):
        return Layered(Archive(file) for file in exported)
    raise StoreError(f"no store at {path}: run something first, or name another with --store")


def export(runs: Mapping[str, Mapping[str, bytes]], target: Path, about: Mapping[str, Any]) -> None:
    """Write verified runs into one file, atomically. The same runs always give the same bytes."""
    for run_id, files in runs.items():
        verified(run_id, files)
    manifest = {
        "schema": SCHEMA,
        "about": dict(about),
        "runs": {run_id: digest(runs[run_id][CHECKSUMS]) for run_id in sorted(runs)},
    }
    staging = target.with_name(f".{target.name}-{os.urandom(4).hex()}")
    try:
        with zipfile.ZipFile(staging, "w", zipfile.ZIP_DEFLATED) as archive:
            write = lambda name, data: archive.writestr(zipfile.ZipInfo(name, EPOCH), data, zipfile.ZIP_DEFLATED)
            write(MANIFEST, json.dumps(manifest, indent=1, sort_keys=True))
            for run_id in sorted(runs):
                for name in sorted(runs[run_id]):
                    write(f"{run_id}/{name}", runs[run_id][name])
        os.replace(staging, target)
    except OSError as error:
        raise StoreError(f"could not write {target}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            staging.unlink()


def merge(archive: Archive, store: Store) -> tuple[int, int]:
    """Take an exported file into a store. Returns (new, already there).

    Every run is verified before the first is stored: a file that does not verify changes nothing. A run that is
    stored but damaged is moved aside for the one that verifies.
    """
    ids = sorted(archive.ids())
    for run_id in ids:
        archive.read(run_id)
    new = 0
    for run_id in ids:
        if store.has(run_id):
            try:
                store.read(run_id)
                continue
            except DamagedRun:
                store.refuse(run_id)
        new += store.commit(run_id, archive.files(run_id))
        with store.claim(run_id) as mine:
            if mine:
                store.forget(run_id)
    return new, len(ids) - new
