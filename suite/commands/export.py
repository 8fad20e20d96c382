"""Write stored runs into one file, and all their numbers into a table beside it, F with the ending .parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.commands import options
from suite.files import check_file
from suite.papers.evidence import export_selection


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
