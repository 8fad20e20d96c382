"""Regressions between two stores of the same runs. Exit 1 when there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.commands import options
from suite.commands.output import result
from suite.runs.archive import open_runs
from suite.runs.comparison import compare_runs, lines


def command(
    base: Annotated[Path, typer.Argument(help="store or exported file")],
    new: Annotated[Path, typer.Argument(help="store or exported file")],
    *,
    as_json: options.Json = False,
) -> None:
    found = compare_runs(open_runs(base), open_runs(new))
    result(found, lines(found), as_json)
    raise typer.Exit(1 if found["regressions"] else 0)
