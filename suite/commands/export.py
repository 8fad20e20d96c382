"""Write stored runs into one file, and all their numbers into a table beside it, F with the ending .parquet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from suite.clock import counted
from suite.commands import options
from suite.files import check_file
from suite.own.results import tidy
from suite.papers.catalogue import select
from suite.runs.archive import export
from suite.runs.environment import provenance
from suite.runs.run import StoreError, write
from suite.runs.store import Store


def command(
    selector: options.Selectors = None,
    *,
    store: options.StoreOption = options.STORE,
    out: Annotated[Path, options.place("file to write", metavar="F")] = Path("runs.zip"),
    profile: Annotated[options.Profile | None, typer.Option(help="only the runs of this profile")] = None,
    ro_crate: Annotated[bool, typer.Option("--ro-crate", help="describe the file in it as an RO-Crate")] = False,
) -> None:
    check_file(out)
    print(export_selection(selector or [], store, out, profile, ro_crate=ro_crate))


def export_selection(
    selectors: Sequence[str], store: Path, out: Path, profile: str | None, *, ro_crate: bool = False
) -> str:
    """Write the stored runs of a selection (at one profile, or all) into one file; returns a sentence.

    With ``ro_crate`` the file describes itself as an RO-Crate (:mod:`suite.runs.crate`).

    Beside it goes the same in one tidy table, ``runs.parquet`` for ``runs.zip``, which any tool reads.

    Raises StoreError when there is none, when one does not verify, when the files cannot be written, or would replace
    what no export wrote.
    """
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
    write(table, tidy(runs).to_parquet(index=False, compression="zstd"))
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
