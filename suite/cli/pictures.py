"""Commands that draw and write: figures, report, refresh, and the whole main job, reproduce."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from suite.cli.options import (
    STORE,
    SVG,
    Budget,
    DataOption,
    Device,
    DeviceOption,
    Format,
    OnlyMine,
    Profile,
    ProfileOption,
    Selectors,
    SourceOption,
    StoreOption,
    TableFormat,
    Workers,
    a_path,
)
from suite.cli.output import say, source
from suite.interruption import Interrupted, watched


def figures(
    selector: Selectors = None,
    *,
    profile: Annotated[Profile | None, typer.Option(help="draw this profile only")] = None,
    store: SourceOption = None,
    only_mine: OnlyMine = False,
    out: Annotated[Path, typer.Option(help="folder for the figures", metavar="D", parser=a_path)] = Path("figures"),
    forms: Annotated[list[Format], typer.Option("--format", help="file format; give it again for more")] = SVG,
    data: Annotated[TableFormat | None, typer.Option("--data", help="write what is drawn as a table too")] = None,
) -> None:
    """Draw every figure whose runs are stored.

    Exit 1 when an artifact that was named is not drawn, when stored runs do not verify or the code that draws fails.
    """
    from suite.report.drawing import draw_selection
    from suite.runs.files import check_writable

    check_writable(out)
    for line in draw_selection(selector or [], source(store, only_mine), out, forms, profile, data):
        say(line)


def report(
    selector: Selectors = None,
    *,
    store: SourceOption = None,
    out: Annotated[Path, typer.Option(help="folder for the report", metavar="D", parser=a_path)] = Path("report"),
    single: Annotated[bool, typer.Option("--single", help="one self-contained file, D/report.html")] = False,
) -> None:
    """Write a site of static pages with artifacts, numbers and verdicts; only what changed is written again.

    Exit 1 when the code that draws an artifact fails.
    """
    from suite.papers.evidence import with_committed
    from suite.report.site.build import write_site
    from suite.report.site.single import write_single
    from suite.runs.files import check_writable

    check_writable(out)
    try:
        with watched():
            make = write_single if single else write_site
            built = make(source(store), out, say, partial(with_committed, store), selector or [])
    except Interrupted as interrupted:
        say(f"interrupted by {interrupted.name}: pages that are written stay, the same command makes the others")
        raise typer.Exit(interrupted.exit_code) from None
    say(str(built))
    print(built.index)
    for fault in built.faults:
        say(fault)
    raise typer.Exit(1 if built.faults else 0)


def refresh_(
    papers: Annotated[list[str] | None, typer.Argument(metavar="[PAPER]...", help="papers; none: all")] = None,
    *,
    check: Annotated[bool, typer.Option("--check", help="compare only; exit 1 when a file is out of date")] = False,
) -> None:
    """Renew what is made from papers and their evidence: the index, and tables in README and docs."""
    from suite.commands.refresh import refresh

    code, said = refresh(papers or [], check=check)
    print("\n".join(said))
    raise typer.Exit(code)


def reproduce(
    selector: Selectors = None,
    *,
    profile: ProfileOption = Profile.smoke,
    store: StoreOption = STORE,
    data: DataOption = None,
    device: DeviceOption = Device.auto,
    workers: Workers = 1,
    budget: Budget = None,
    out: Annotated[Path, typer.Option(help="folder for figures and report", metavar="D", parser=a_path)] = Path(
        "report"
    ),
    accept: Annotated[bool, typer.Option("--accept", help="commit these verdicts as the expected ones")] = False,
) -> None:
    """The main job: run, check, figures and report. Exit 0 when every verdict equals the committed one."""
    from suite.commands.reproduce import reproduce_selection
    from suite.runs.files import check_writable

    check_writable(out)
    raise typer.Exit(reproduce_selection(selector or [], profile, store, data, device, workers, budget, out, accept))
