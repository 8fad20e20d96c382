"""Runs as one file: ``export`` writes it, ``merge`` takes it in, and evidence is read from it in place.

The file is a zip of run folders with a manifest. Both ends verify every run; a file that does not verify is
refused whole, so a store never holds half of an import. Whoever wrote it, reading it takes bounded memory: names
and sizes are looked at before anything is unpacked, and only what ``export`` writes is unpacked at all.

Runs under way are another such file, so that another machine goes on where this one had to stop: a zip of
``STORE/partial``. Whoever takes it in looks at names and sizes before anything is unpacked; what
a folder holds is judged when its run is resumed, which begins anew what it cannot go on with.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from suite.files import shortened, whole
from suite.runs import crate
from suite.runs.run import (
    CHECKSUMS,
    DamagedRun,
    Run,
    StoreError,
    UnreadableRun,
    digest,
    is_run_id,
    plain_name,
    verified,
)
from suite.runs.store import NewRun, Store
from suite.runs.tables import check_table
from suite.spec import SCHEMA

MANIFEST = "manifest.json"
EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed date: the same runs give the same bytes
MOST_FILE = 64 * 2**20  # bytes of one unpacked file; the largest committed one has 0.8 MB
# Bytes of all files together: what any export may unpack to, or so many times its size. The tables of runs are packed
# already, so exports unpack to less than twice their size; to a thousand times only a bomb does.
MOST_SMALL, MOST_RATIO = 2**28, 30
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others unfold without bound at each step


KEPT = 64 * 2**20  # bytes of an archive's runs that are kept once they are verified


class Runs(Protocol):
    """Anything that finished runs can be read from: a Store, an Archive, or several of them."""

    def ids(self) -> set[str]: ...

    def read(self, run_id: str) -> Run: ...

    def versions(self, run_id: str) -> list[Run]:
        """Every version of a run that it holds, the deciding one first. Raises as ``read``."""
        return [self.read(run_id)]


Relate = Callable[[Run, Run], str]

# What zipfile raises for a file that is damaged, encrypted or packed in a way it does not know
UNREADABLE = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, KeyError, RuntimeError)


class Archive(Runs):
    """The runs of one exported file, verified one by one as they are read.

    Raises StoreError for a file that ``export`` did not write, DamagedRun for names that are not a run's.
    """

    def __init__(self, path: Path):
        self.path = Path(path)
        try:
            self._zip = zipfile.ZipFile(self.path)
            infos = self._zip.infolist()
            self._check_sizes(infos)
            manifest = dict(json.loads(self._unpack(MANIFEST)))
            schema, self.sealed = manifest.get("schema"), dict(manifest.get("runs", {}))
        except (*UNREADABLE, TypeError) as error:
            if isinstance(error, StoreError):
                raise
            why = error.args[0] if isinstance(error, KeyError) else getattr(error, "strerror", None) or error
            raise StoreError(f"{self.path} is not an export of runs: {shortened(str(why))}") from error
        if schema != SCHEMA:
            raise StoreError(f"{self.path} has schema {shortened(repr(schema))}; this version reads {SCHEMA}")
        self._names: dict[str, list[str]] = {}
        for info in infos:
            if info.filename in (MANIFEST, crate.NAME):
                continue
            run_id, _, file = info.filename.partition("/")
            self._names.setdefault(run_id, []).append(file)
        files = {file for names in self._names.values() for file in names}
        if odd := [*itertools.filterfalse(is_run_id, self._names), *itertools.filterfalse(plain_name, files)]:
            raise DamagedRun(f"{self.path}: {odd[0][:200]!r} is no run's id or file")
        if len({info.filename for info in infos}) != len(infos):
            raise DamagedRun(f"{self.path}: it holds two files of one name")
        if set(self._names) != set(self.sealed):
            raise DamagedRun(f"{self.path}: its runs are not those of its manifest")
        self._read: dict[str, Run] = {}  # verified once; many figures read the same runs
        self._room = KEPT

    def _check_sizes(self, infos: Iterable[zipfile.ZipInfo]) -> None:
        """Raise DamagedRun for packings that ``export`` does not write, and for more bytes than runs would have."""
        total = 0
        for info in infos:
            total += info.file_size
            if info.compress_type not in PACKINGS:
                raise DamagedRun(f"{self.path}: {info.filename[:200]!r} is packed in a way that export does not use")
            if info.file_size > MOST_FILE:
                raise DamagedRun(
                    f"{self.path}: {info.filename[:200]!r} has {info.file_size:,} bytes; a file of a run may have "
                    f"{MOST_FILE:,}"
                )
        if total > max(MOST_SMALL, MOST_RATIO * self.path.stat().st_size):
            raise DamagedRun(f"{self.path}: its files unpack to {total:,} bytes, far more than runs do")

    def _unpack(self, name: str) -> bytes:
        """One file, no longer than the zip's directory says, which has been looked at."""
        info = self._zip.getinfo(name)
        with self._zip.open(info) as stream:
            return stream.read(info.file_size)

    def ids(self) -> set[str]:
        return set(self.sealed)

    def files(self, run_id: str) -> dict[str, bytes]:
        """All files of a run, checked against the manifest. Raises KeyError, DamagedRun or UnreadableRun."""
        names = self._names[run_id]
        try:
            files = {name: self._unpack(f"{run_id}/{name}") for name in names}
        except UNREADABLE as error:
            # A damaged directory of the zip leads to places that no file has (EINVAL); the rest is the system's.
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise UnreadableRun(f"run {run_id} in {self.path}", error) from error
            raise DamagedRun(f"run {run_id} in {self.path}: {error}") from error
        if digest(files.get(CHECKSUMS, b"")) != self.sealed[run_id]:
            raise DamagedRun(f"run {run_id} in {self.path}: its checksums are not the manifest's")
        return files

    def read(self, run_id: str) -> Run:
        if (known := self._read.get(run_id)) is not None:
            return known
        run = verified(run_id, self.files(run_id))
        self._room -= sum(map(len, run.files.values()))
        if self._room > 0:
            self._read[run_id] = run
        return run


class Layered:
    """Several sources of runs seen as one; the first that holds a run answers for it."""

    def __init__(self, sources: Iterable[Runs]):
        self.sources = tuple(sources)

    def ids(self) -> set[str]:
        return set[str]().union(*(each.ids() for each in self.sources))

    def read(self, run_id: str) -> Run:
        for source in self.sources:
            try:
                return source.read(run_id)
            except KeyError:
                continue
        raise KeyError(run_id)

    def versions(self, run_id: str) -> list[Run]:
        """The run from every source that holds it, in their order; raises as ``read``."""
        found: list[Run] = []
        for source in self.sources:
            if isinstance(source, Archive) and run_id not in source.sealed:
                continue  # thousands of runs are asked of every exported file
            with contextlib.suppress(KeyError):
                found += source.versions(run_id)
        if not found:
            raise KeyError(run_id)
        return found


def contents(source: Runs, run_ids: Set[str]) -> tuple[Any, ...]:
    """What a source holds of these runs, as digests: of an exported file its manifest's. Raises UnusableRun."""
    found: list[tuple[Any, ...]] = []
    for layer in source.sources if isinstance(source, Layered) else (source,):
        if isinstance(layer, Archive):
            held = sorted(run_ids & layer.sealed.keys())
            found.append((*held, *map(layer.sealed.__getitem__, held)))
        elif isinstance(layer, Layered):
            found.append(contents(layer, run_ids))
        else:
            held = sorted(run_ids & layer.ids())
            found.append(tuple(run.files[CHECKSUMS] for run_id in held for run in layer.versions(run_id)))
    return tuple(found)


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


def export(
    runs: Mapping[str, Mapping[str, bytes]], target: Path, about: Mapping[str, Any], *, ro_crate: bool = False
) -> None:
    """Write verified runs into one file, atomically, as an RO-Crate if asked. The same runs give the same bytes."""
    for run_id, files in runs.items():
        verified(run_id, files)
    manifest = {
        "schema": SCHEMA,
        "about": dict(about),
        "runs": {run_id: digest(runs[run_id][CHECKSUMS]) for run_id in sorted(runs)},
    }
    listed = json.dumps(manifest, indent=1, sort_keys=True)
    try:
        with whole(target) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            write = lambda name, data: archive.writestr(zipfile.ZipInfo(name, EPOCH), data, zipfile.ZIP_DEFLATED)
            write(MANIFEST, listed)
            if ro_crate:
                held = [Run(run_id, runs[run_id]) for run_id in sorted(runs)]
                write(crate.NAME, crate.described(held, MANIFEST, listed.encode()))
            for run_id in sorted(runs):
                for name in sorted(runs[run_id]):
                    write(f"{run_id}/{name}", runs[run_id][name])
    except OSError as error:
        raise StoreError(f"could not write {target}: {error.strerror}") from error


@dataclass
class Merged:
    """What an import came to: runs by what became of them."""

    new: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)  # with the same deterministic tables
    others: list[str] = field(default_factory=list)  # of another execution; the store's version stays
    contested: list[str] = field(default_factory=list)  # kept beside the store's version, for ``check`` to name


def _check_tables(run: Run) -> None:
    """Raise DamagedRun where one of a run's tables cannot be read."""
    for name in run.curves:
        try:
            check_table(run.files[f"{name}.parquet"])
        except ValueError as error:
            raise DamagedRun(f"run {run.id}: {name}.parquet is {error}") from error


def merge(archive: Archive, store: Store, relate: Relate) -> Merged:
    """Take an exported file into a store, whole or not at all.

    Every run is verified and its tables are parsed before the first is stored: a file that holds anything else,
    and a disk that fills up, change nothing. A run that is stored but damaged is moved aside for the one that
    verifies; one that cannot be read ends the import with UnreadableRun. ``relate`` says how two versions of a run
    relate (``suite.runs.comparison.relation``).
    """
    done = Merged()

    def entries() -> Iterator[NewRun]:
        for run_id in sorted(archive.ids()):
            run = archive.read(run_id)
            _check_tables(run)
            try:
                kind = relate(store.read(run_id), run)
            except KeyError:
                done.new.append(run_id)
                yield NewRun(run)
            except DamagedRun:
                done.new.append(run_id)
                yield NewRun(run, replaces=True)
            else:
                if kind == "contested":
                    done.contested.append(run_id)
                    yield NewRun(run, contests=True)
                elif kind == "other execution":
                    done.others.append(run_id)
                else:
                    done.present.append(run_id)

    store.commit_all(entries())
    for run_id in done.new:
        with contextlib.suppress(OSError):  # what was begun of a run that is there harms nothing
            store.clear(run_id)
    return done


MOST_BYTES = 8 * 2**30  # of all checkpoints together


def pack(root: Path, target: Path) -> list[str]:
    """Write what has been begun in a store and is not finished; returns the ids of its runs."""
    store = Store(root)
    finished = store.ids()
    begun = [folder for folder in store.begun() if folder.parent.name not in finished]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in begun:
            for file in sorted(folder.iterdir()):
                archive.write(file, f"{folder.parent.name}/{folder.name}/{file.name}")
    return sorted({folder.parent.name for folder in begun})


def take(source: Path, root: Path) -> list[str]:
    """Put the runs of such a file into a store that has neither finished nor begun them; returns their ids.

    Raises StoreError for a file that is no zip, DamagedRun for names or sizes that ``pack`` does not write.
    """
    store = Store(root, create=True)
    try:
        archive = zipfile.ZipFile(source)
    except (OSError, zipfile.BadZipFile) as error:
        raise StoreError(f"{source} holds no runs under way: {error}") from error
    with archive:
        names: dict[str, list[str]] = {}  # by run
        for name in archive.namelist():
            run_id, *rest = name.split("/")
            if not is_run_id(run_id) or len(rest) != 2 or not all(map(plain_name, rest)):
                raise DamagedRun(f"{source}: {name[:200]!r} is not a file of a run under way")
            names.setdefault(run_id, []).append(name)
        if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
            raise DamagedRun(f"{source}: its files unpack to more than {MOST_BYTES:,} bytes")
        wanted = [r for r in names if r not in store.ids() and not store.partial(r).exists()]
        for run_id in wanted:
            archive.extractall(store.root / "partial", names[run_id])
    return wanted
