"""Write a site of static pages with artifacts, numbers and verdicts.

Exit 1 when the code that draws an artifact fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.commands import options
from suite.commands.output import say, source
from suite.files import check_writable
from suite.interruption import watched
from suite.report.site.build import write_site


def command(
    selector: options.Selectors = None,
    *,
    store: options.SourceOption = None,
    out: Annotated[Path, options.place("folder for the report")] = Path("report"),
    single: Annotated[bool, typer.Option("--single", help="one self-contained file, D/report.html")] = False,
) -> None:
    check_writable(out)
    with watched():
        page, site = write_site(source(store), out, say, selector or [], single=single)
    if not single:
        say(str(site))
    print(page)
    for fault in site.faults:
        say(fault)
    raise typer.Exit(1 if site.faults else 0)
