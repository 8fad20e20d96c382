"""Take an exported file into a store, whole or not at all. Exit 1 when it contests a stored run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.clock import counted
from suite.commands import options
from suite.papers.measurement import relate
from suite.runs.archive import Archive, merge
from suite.runs.store import Store


def command(
    file: Annotated[Path, typer.Argument(help="a file that export wrote")],
    *,
    store: options.StoreOption = options.STORE,
) -> None:
    done = merge(Archive(file), Store(store, create=True), relate)
    other = f", {len(done.others)} kept as another execution made them" if done.others else ""
    print(f"{counted(len(done.new), 'run')} added, {len(done.present)} already there{other}")
    for run_id in done.contested:
        print(f"CONTESTED {run_id}: other tables than the store's of the same execution; both are kept, see `check`")
    raise typer.Exit(1 if done.contested else 0)
