"""Committed evidence: exported runs beside the claims, readable in place, and how they are made."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from suite.clock import counted
from suite.papers.catalogue import homes, select
from suite.runs.archive import Archive, Layered, Runs, export, open_runs
from suite.runs.long_table import tidy
from suite.runs.run import Run, StoreError, write
from suite.runs.store import Store

UNNAMED = Path("runs.store")  # where runs go, in the working folder, unless a store is named


def committed() -> list[Runs]:
    """The exported files that the papers come with."""
    paths = [path for folder in folders() for path in sorted(folder.glob("*.zip"))]
    return [_opened(path, (found := path.stat()).st_mtime_ns, found.st_size) for path in paths]


@cache
def _opened(path: Path, written: int, size: int) -> Archive:
    """An exported file, opened once for each state of it: it remembers what it verified."""
    return Archive(path)


def folders() -> list[Path]:
    """Where papers keep evidence."""
    return [home / "evidence" for home in homes()]


def with_committed(store: Path | None) -> Runs:
    """The runs of ``store`` first, the committed evidence beneath; ``None`` means the store of this folder.

    A store that was named must exist, and must be one: raises StoreError otherwise. The unnamed one may be
    missing when there is committed evidence, which is installed apart.
    """
    if store is None and not UNNAMED.exists():
        if shipped := committed():
            return Layered(shipped)
        raise StoreError(
            f"no store at {UNNAMED}, and the committed runs are not installed: run something first, name a store "
            "with --store, or install the wheel sgd_scaling_suite_evidence that was built with this one"
        )
    store = store or UNNAMED
    if store.resolve() in [folder.resolve() for folder in folders()]:
        return open_runs(store)
    return Layered([open_runs(store), *committed()])


def committed_ids() -> set[str]:
    """Ids of the runs that the papers come with, unverified."""
    return set().union(*(runs.ids() for runs in committed()))


def of_user(store: Path | None) -> Runs:
    """The runs of ``store`` alone; ``None`` means the store of this folder. Raises StoreError where there is none."""
    return open_runs(store or UNNAMED)


def ids_of_user(store: Path | None, *, new: bool = False) -> set[str]:
    """Ids of the user's own runs, which ``run`` would not compute again; committed evidence is not among them.

    The store of this folder may be missing, and with ``new`` a named one too. Raises StoreError for a named one
    that is none.
    """
    place = store or UNNAMED
    if not place.exists() and (store is None or new):
        return set()
    if place.resolve() in [folder.resolve() for folder in folders()]:
        return set()
    return open_runs(place).ids()


class ReadOnce:
    """A source that reads each run once: verdicts, drawings and the list of runs share what was verified."""

    def __init__(self, source: Runs):
        self.ids = cache(source.ids)
        self.versions = cache(source.versions)

    def read(self, run_id: str) -> Run:
        return self.versions(run_id)[0]


def read_once(source: Runs) -> Runs:
    """The same source, which verifies each of the user's runs once; committed evidence remembers by itself."""
    if isinstance(source, Layered):
        return Layered(layer if isinstance(layer, Archive) else ReadOnce(layer) for layer in source.sources)
    return source if isinstance(source, Archive) else ReadOnce(source)


def export_selection(
    selectors: Sequence[str], store: Path, out: Path, profile: str | None, *, ro_crate: bool = False
) -> str:
    """Write the stored runs of a selection (at one profile, or all) into one file; returns a sentence.

    With ``ro_crate`` the file describes itself as an RO-Crate (:mod:`suite.runs.crate`).

    Beside it goes the same in one tidy table, ``runs.parquet`` for ``runs.zip``, which any tool reads.

    Raises StoreError when there is none, when one does not verify, when the files cannot be written, or would replace
    what no export wrote.
    """
    from suite.runs.environment import provenance

    table = table_beside(out)
    held = Store(store)
    profiles = [profile] if profile else []
    wanted = {run for _, artifacts in select(selectors) for each in artifacts for run in each.ids(*profiles)}
    names = wanted & held.ids()
    if not names:
        raise StoreError(f"{store} holds no run of this selection: run it first")
    out.parent.mkdir(parents=True, exist_ok=True)
    runs = [held.read(run_id) for run_id in sorted(names)]
    export({run.id: run.files for run in runs}, out, provenance(), ro_crate=ro_crate)
    buffer = io.BytesIO()
    tidy(runs).to_parquet(buffer, index=False, compression="zstd")
    write(table, buffer.getvalue())
    written = f"{counted(len(names), 'run')} written to {out}"
    return f"{written} ({out.stat().st_size / 1e6:.2f} MB), as one table to {table}"


def table_beside(out: Path) -> Path:
    """Where the table of an exported file goes. Raises StoreError where either name is taken by something else."""
    table = out.with_suffix(".parquet")
    if table == out:
        raise StoreError(f"{out} is the name of the table beside the exported file; name the file .zip")
    for path in (out, table):
        if os.path.lexists(path) and not path.is_file():
            raise StoreError(f"{path} is there and no plain file; name another file with --out")
    if table.exists() and not out.exists():
        raise StoreError(f"{table} is there without {out}, and would be replaced; move it or name another --out")
    return table
