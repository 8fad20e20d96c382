"""Draw every figure whose runs are stored.

Exit 1 when the runs of an artifact that was named are missing, stored runs do not verify or the drawing fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.commands import options
from suite.commands.output import say, source
from suite.files import check_writable
from suite.report.drawing import draw_selection


def command(
    selector: options.Selectors = None,
    *,
    profile: Annotated[options.Profile | None, typer.Option(help="draw this profile only")] = None,
    store: options.SourceOption = None,
    only_mine: options.OnlyMine = False,
    out: Annotated[Path, options.place("folder for the figures")] = Path("figures"),
    forms: options.Formats = options.SVG,
    data: Annotated[
        options.TableFormat | None, typer.Option("--data", help="write what is drawn as a table too")
    ] = None,
) -> None:
    check_writable(out)
    for line in draw_selection(selector or [], source(store, only_mine), out, forms, profile, data):
        say(line)
