"""A finished run: the files of its folder, sealed by their checksums and verified whenever they are read.

Files from elsewhere are data: JSON and parquet are parsed, nothing is unpickled, and no name leads out of the folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from suite.files import shortened, write_whole
from suite.lazy import pd
from suite.runs.tables import MOST_CELLS, read_table
from suite.spec import ID_LENGTH, SCHEMA, RunSpec

STATUSES = ("finished", "diverged", "out of budget")
CHECKSUMS = "checksums.json"
REQUIRED = {"spec.json", "environment.json", "outcome.json"}
ENVIRONMENT = ("device", "execution", "machine", "telemetry", "versions")  # its parts that are mappings
LONGEST_NAME = 128  # bytes of a file's name


class StoreError(ValueError):
    """A store that cannot be read or written as asked."""


def write(path: Path, data: bytes) -> Path:
    """Write a file so that it is there whole or not at all. Raises StoreError when that is impossible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
    except OSError as error:
        raise StoreError(f"could not write {path}: {error.strerror}") from error
    return path


class UnusableRun(StoreError):
    """A stored run on which nothing can rest: it is damaged, or cannot be read."""


class DamagedRun(UnusableRun):
    """A run that was read and does not verify: truncated, edited, or not what its name says."""


class UnreadableRun(UnusableRun):
    """A run that could not be read this time, so that nobody knows whether it verifies."""

    def __init__(self, which: str, error: OSError):
        super().__init__(f"{which} cannot be read ({error.strerror or error}); nothing was moved")


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

    @cached_property
    def digest(self) -> str:
        """A digest of the contents of all files."""
        return digest(seal(self.files))

    @cached_property
    def _tables(self) -> dict[str, pd.DataFrame]:
        return {}

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
        """The table ``name``; raises KeyError naming the tables there are, DamagedRun for what is no table."""
        try:
            if name not in self._tables:  # parsed once, since many measures read the same ones
                self._tables[name] = read_table(self.files[f"{name}.parquet"])
            return self._tables[name].copy()
        except KeyError:
            raise KeyError(f"run {self.id} has no curve {name!r}; it has {self.curves}") from None
        except ValueError as error:
            raise DamagedRun(f"run {self.id}: {name}.parquet is {error}") from error


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def seal(files: Mapping[str, bytes]) -> bytes:
    """The checksum file of a run folder with these files."""
    return json.dumps({"schema": SCHEMA, "files": {n: digest(files[n]) for n in sorted(files)}}, indent=1).encode()


_SEPARATORS = frozenset("/\\:")


def plain_name(name: str) -> bool:
    """Whether a file name is a single visible name that leads nowhere else and fits every file system."""
    fits = name.isprintable() and 0 < len(name.encode(errors="replace")) <= LONGEST_NAME
    return fits and not name.startswith(".") and _SEPARATORS.isdisjoint(name)


def verified(run_id: str, files: Mapping[str, bytes]) -> Run:
    """The run made of these files, checksum file included. Raises DamagedRun saying what is wrong with it."""
    try:
        run = Run(run_id, files)
        if wrong := _defect(run):
            raise DamagedRun(f"run {run_id}: {shortened(wrong)}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"run {run_id}: {shortened(str(error))}"
        raise error if isinstance(error, DamagedRun) else DamagedRun(why) from error
    return run


def _defect(run: Run) -> str:
    """What is wrong with a run's files, or nothing. Raises whatever a file of the wrong shape leads to."""
    files = run.files
    if CHECKSUMS not in files:
        return f"{CHECKSUMS} is missing"
    try:
        sealed = json.loads(files[CHECKSUMS])
        schema, sums = sealed["schema"], dict(sealed["files"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"{CHECKSUMS} holds no checksums; `run` computes the run again"
    if schema != SCHEMA:
        return f"schema {schema!r}, where this version reads {SCHEMA}"
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
    if odd := [part for part in ENVIRONMENT if not isinstance(run.environment.get(part, {}), dict)]:
        return f"the {odd[0]} of its environment must be a mapping"
    return ""


def _plain(value: Any) -> Any:
    """A number of numpy's or torch's as Python's. Raises TypeError for what is none."""
    if not hasattr(value, "item"):
        raise TypeError(f"a result is {value!r}; results are numbers, texts, lists and dicts of these")
    return value.item()


def encode(spec: RunSpec, environment: Mapping[str, Any], outcome: Outcome) -> dict[str, bytes]:
    """The files of a run folder, checksum file included. Raises ValueError for a table that nobody would read."""
    files = {
        "spec.json": spec.text.encode(),
        "environment.json": json.dumps(environment, indent=1, sort_keys=True).encode(),
        "outcome.json": json.dumps(
            {"status": outcome.status, "note": outcome.note, "results": dict(outcome.results)},
            indent=1,
            default=_plain,
        ).encode(),
    }
    for name, table in outcome.curves.items():
        if table.size > MOST_CELLS:
            raise ValueError(f"its table {name!r} has {table.size:,} cells, and a run's may have {MOST_CELLS:,}")
        files[f"{name}.parquet"] = table.to_parquet(index=False, compression="zstd")
    return files | {CHECKSUMS: seal(files)}


_HEX = frozenset("0123456789abcdef")


def is_run_id(name: str) -> bool:
    """Whether a name is the id of a run: the hex digits that ``RunSpec.id`` gives."""
    return len(name) == ID_LENGTH and _HEX.issuperset(name)
