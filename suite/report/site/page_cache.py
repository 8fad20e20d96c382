"""From what a page follows, as digests: code, tables and committed evidence; and the user's own runs, one by one.

What a site was made from: one file in its folder, by which the next call knows what to leave as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path, PurePosixPath

from suite.files import now_in, staged, sweep
from suite.papers.artifact import Artifact
from suite.papers.catalogue import homes
from suite.papers.evidence import exported_files
from suite.report.drawing import write
from suite.runs.archive import Archive, Layered, Runs, versions
from suite.runs.environment import ROOT
from suite.runs.run import CHECKSUMS, Run, UnusableRun

NAME = "site.json"


@dataclass
class RunGroup:
    """Files that are made together: ``key`` of what they were made from, digest of each by its path in the site."""

    key: str
    files: dict[str, str] = field(default_factory=dict)


class Folder:
    """The folder of a site with its stamp. A file that was edited or removed counts as not made."""

    def __init__(self, root: Path):
        self.root = Path(root)
        self.key, self.groups = self._stamp()
        self.written: list[str] = []
        # A process that died while it wrote files of this site has left parts of them.
        files = {self.root / path for group in self.groups.values() for path in group.files}
        for parent in {path.parent for path in files}:
            with contextlib.suppress(OSError):  # nothing can be written there, or there is nothing
                sweep((path for path, name in staged(parent) if parent / name in files), now_in(parent))

    def _stamp(self) -> tuple[str, dict[str, RunGroup]]:
        """The stamp's contents; nothing where there is none or it cannot be read."""
        try:
            known = json.loads((self.root / NAME).read_bytes())
            groups = {name: RunGroup(str(row["key"]), dict(row["files"])) for name, row in known["groups"].items()}
            if not all(_inside(path) for group in groups.values() for path in group.files):
                return "", {}
            return str(known["key"]), groups
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return "", {}

    def holds(self, name: str, key: str) -> bool:
        """Whether the group was made from ``key`` and all its files are as they were written."""
        group = self.groups.get(name)
        return (
            group is not None
            and group.key == key
            and all(self._intact(path, digest) for path, digest in group.files.items())
        )

    def complete(self, key: str) -> bool:
        """Whether the whole site was made from ``key`` and is as it was written."""
        return bool(self.groups) and self.key == key and all(self.holds(n, g.key) for n, g in self.groups.items())

    def _intact(self, path: str, digest: str) -> bool:
        try:
            return digest_of((self.root / path).read_bytes()) == digest
        except OSError:
            return False

    def put(self, name: str, key: str, files: Mapping[str, bytes]) -> None:
        """Write those of a group's files that differ from what is there, and remove those it no longer has.

        Raises StoreError when one cannot be written.
        """
        before = self.groups.get(name, RunGroup(""))
        group = RunGroup(key, {path: digest_of(data) for path, data in files.items()})
        for path, digest in group.files.items():
            if not self._intact(path, digest):
                write(self.root / path, files[path])
                self.written.append(path)
        self._remove(set(before.files) - set(group.files))
        self.groups[name] = group

    def close(self, key: str, names: Iterable[str]) -> None:
        """Keep these groups alone and say that the site is whole."""
        kept = {name: self.groups[name] for name in names}
        files = {path for group in kept.values() for path in group.files}
        self._remove({path for group in self.groups.values() for path in group.files} - files)
        self.key, self.groups = key, kept
        self.save()

    def save(self) -> None:
        """Write the stamp, so that the next call goes on from here."""
        rows = {name: asdict(group) for name, group in self.groups.items()}
        write(self.root / NAME, json.dumps({"key": self.key, "groups": rows}, indent=0).encode())

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with contextlib.suppress(OSError):
                (self.root / path).unlink()


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:20]


def _inside(path: str) -> bool:
    """Whether a path of a stamp, which anybody can have written, stays in the folder."""
    return not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts


LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "jinja2", "matplotlib", "pillow", "seaborn")  # compute and draw
READ = {".py", ".toml", ".json", ".jsonl", ".txt", ".csv", ".cpp", ".h"}  # files that can change a page


@cache
def state() -> str:
    """A digest of everything but the user's runs that a page follows from."""
    here = Path(__file__).parent
    read = {*here.glob("*.j2"), here / "site.css", here / "site.js", *exported_files()}
    for root in (ROOT / "suite", ROOT / "reference_impls", *homes()):
        read |= {path for path in root.rglob("*") if path.suffix in READ}
    parts = [sys.version, *(metadata.version(name) for name in LIBRARIES)]
    parts += [f"{path} {digest_of(path.read_bytes())}" for path in sorted(read)]
    return digest_of(repr(parts).encode())


class ReadOnce:
    """A source that reads each run once: verdicts, drawings and the list of runs share what was verified."""

    def __init__(self, source: Runs):
        self._source = source
        self._read: dict[str, list[Run] | UnusableRun] = {}
        self._ids = source.ids()

    def ids(self) -> set[str]:
        return self._ids

    def read(self, run_id: str) -> Run:
        return self.versions(run_id)[0]

    def versions(self, run_id: str) -> list[Run]:
        if run_id not in self._ids:
            raise KeyError(run_id)
        if run_id not in self._read:
            try:
                self._read[run_id] = versions(self._source, run_id)
            except UnusableRun as error:
                self._read[run_id] = error
        found = self._read[run_id]
        if isinstance(found, UnusableRun):
            raise found
        return found


def read_once(source: Runs) -> Runs:
    """The same source, which verifies each of the user's runs once; committed evidence remembers by itself."""
    if isinstance(source, Layered):
        return Layered(layer if isinstance(layer, Archive) else ReadOnce(layer) for layer in source.sources)
    return source if isinstance(source, Archive) else ReadOnce(source)


def seals(source: Runs) -> dict[str, str]:
    """Run id -> digest of what the user's own stores hold of it, each version verified, or of what is wrong."""
    layers = source.sources if isinstance(source, Layered) else (source,)
    shipped, found = exported_files(), dict[str, str]()
    for layer in layers:
        if isinstance(layer, Archive) and layer.path.resolve() in shipped:
            continue
        for run_id in sorted(layer.ids()):
            try:
                seal = " ".join(digest_of(run.files[CHECKSUMS]) for run in versions(layer, run_id))
            except UnusableRun as error:
                seal = str(error)
            found[run_id] = digest_of(f"{found.get(run_id, '')} {seal}".encode())
    return found


def key_of(artifact: Artifact | None, own: Mapping[str, str]) -> str:
    """What an artifact's page follows from: the state, and those of the user's runs that it can read."""
    reads = artifact.ids() if artifact else set()
    return digest_of(repr([state(), [(run_id, own[run_id]) for run_id in sorted(set(own) & reads)]]).encode())
