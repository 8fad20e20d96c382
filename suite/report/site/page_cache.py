"""From what a page follows, as digests: code, tables and committed evidence; and the user's own runs, one by one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

from suite.papers.artifact import Artifact
from suite.papers.catalogue import homes
from suite.papers.evidence import exported_files, shipped
from suite.report.site.stamp import digest_of
from suite.report.speed import RESULTS
from suite.runs.archive import Archive, Layered, Runs, versions
from suite.runs.environment import ROOT
from suite.runs.store import CHECKSUMS, Run, UnusableRun

LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "jinja2", "matplotlib", "pillow", "seaborn")  # compute and draw
READ = {".py", ".toml", ".json", ".jsonl", ".txt", ".csv", ".cpp", ".h"}  # files that can change a page


@cache
def state() -> str:
    """A digest of everything but the user's runs that a page follows from."""
    here = Path(__file__).parent
    read = {*here.glob("*.j2"), here / "site.css", here / "site.js", *RESULTS.glob("*.json"), *exported_files()}
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
    found: dict[str, str] = {}
    for layer in layers:
        if shipped(layer):
            continue
        for run_id in sorted(layer.ids()):
            found[run_id] = digest_of(f"{found.get(run_id, '')} {_seal(layer, run_id)}".encode())
    return found


def _seal(layer: Runs, run_id: str) -> str:
    try:
        return " ".join(digest_of(run.files[CHECKSUMS]) for run in versions(layer, run_id))
    except UnusableRun as error:
        return str(error)


def key_of(artifact: Artifact | None, own: Mapping[str, str]) -> str:
    """What an artifact's page follows from: the state, and those of the user's runs that it can read."""
    reads = artifact.ids() if artifact else set()
    return digest_of(repr([state(), [(run_id, own[run_id]) for run_id in sorted(set(own) & reads)]]).encode())
