"""Slowdowns against the baseline of this machine class. Exit 1 when there is one, 3 when one could hide."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.commands import options
from suite.commands.output import result
from suite.speed.baselines import FOLDER, baseline, read
from suite.speed.gate import exit_code, judged, lines


def command(
    new: Annotated[list[Path], typer.Argument(help="benchmark documents of one state of the code, one per session")],
    *,
    as_json: options.Json = False,
) -> None:
    found = judged(baseline([read(path) for path in new]), FOLDER)
    result(found, lines(found), as_json)
    raise typer.Exit(exit_code(found))
