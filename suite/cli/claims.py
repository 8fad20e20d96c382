"""Commands about verdicts and what they rest on: claims, drawings, reports, data sets, the machine, new papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.cli import options
from suite.cli.options import place
from suite.cli.output import emit, say, source
from suite.interruption import watched


def check(
    selector: options.Selectors = None,
    *,
    profile: Annotated[options.Profile | None, typer.Option(help="judge at this profile only")] = None,
    store: options.SourceOption = None,
    only_mine: options.OnlyMine = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="the reason of every verdict")] = False,
    as_json: options.Json = False,
    junit: Annotated[Path | None, place("write JUnit XML", metavar="F")] = None,
) -> None:
    """A verdict for every claim. Exit 1 when one is red."""
    from suite.commands.check import check_selection
    from suite.files import check_file
    from suite.papers.evidence import ids_of_user

    judged = source(store, only_mine)
    if junit:
        check_file(junit)
    raise typer.Exit(
        check_selection(
            selector or [], profile, judged, ids_of_user(store), as_json=as_json, junit_path=junit, verbose=verbose
        )
    )


def explain_(
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help="paper/artifact/name")],
    *,
    store: options.SourceOption = None,
    only_mine: options.OnlyMine = False,
) -> None:
    """One verdict: value, rule, register entry, power, runs and figure. Exit 1 when it is red."""
    from suite.commands.explain import LABELS, found, lines
    from suite.commands.terminal import show

    read = source(store, only_mine)
    _, artifact, verdict = found(claim, read)
    show(lines(artifact, verdict, read), " " * LABELS)
    raise typer.Exit(1 if verdict.red else 0)


def register(
    papers: Annotated[list[str] | None, typer.Argument(metavar="[PAPER]...", help="papers; none: all")] = None,
    *,
    because: Annotated[str, typer.Option("--because", help="why rules or runs changed")],
) -> None:
    """Record the rules and grids of today, before the runs that they judge."""
    from suite.commands.refresh import record_rules as append

    for sentence in append(because, papers or []):
        print(sentence)


def together(
    *,
    task: Annotated[str, typer.Option(help="mnist, cifar10, cifar100 or multi30k")] = "mnist",
    budget: Annotated[int | None, typer.Option(min=1, help="gradient evaluations; by default the task's own")] = None,
    profile: Annotated[options.Profile, typer.Option(help="whose runs are read")] = options.Profile.reduced,
    store: options.SourceOption = None,
    only_mine: options.OnlyMine = False,
) -> None:
    """All methods on one task at equal budget, against SGD: a table on one screen. Exit 1 without the runs of SGD."""
    from suite.commands.together import board
    from suite.papers.artifact import Missing

    try:
        print("\n".join(board(task, profile, budget, source(store, only_mine))))
    except Missing as error:
        say(str(error))
        raise typer.Exit(1) from None


def figures(
    selector: options.Selectors = None,
    *,
    profile: Annotated[options.Profile | None, typer.Option(help="draw this profile only")] = None,
    store: options.SourceOption = None,
    only_mine: options.OnlyMine = False,
    out: Annotated[Path, place("folder for the figures")] = Path("figures"),
    forms: options.Formats = options.SVG,
    data: Annotated[
        options.TableFormat | None, typer.Option("--data", help="write what is drawn as a table too")
    ] = None,
) -> None:
    """Draw every figure whose runs are stored.

    Exit 1 when the runs of an artifact that was named are missing, stored runs do not verify or the drawing fails.
    """
    from suite.files import check_writable
    from suite.report.drawing import draw_selection

    check_writable(out)
    for line in draw_selection(selector or [], source(store, only_mine), out, forms, profile, data):
        say(line)


def report(
    selector: options.Selectors = None,
    *,
    store: options.SourceOption = None,
    out: Annotated[Path, place("folder for the report")] = Path("report"),
    single: Annotated[bool, typer.Option("--single", help="one self-contained file, D/report.html")] = False,
) -> None:
    """Write a site of static pages with artifacts, numbers and verdicts.

    Exit 1 when the code that draws an artifact fails.
    """
    from suite.files import check_writable
    from suite.report.site.build import write_site
    from suite.report.site.single import write_single

    check_writable(out)
    with watched():
        make = write_single if single else write_site
        page, site = make(source(store), out, say, selector or [])
    if not single:
        say(str(site))
    print(page)
    for fault in site.faults:
        say(fault)
    raise typer.Exit(1 if site.faults else 0)


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
    selector: options.Selectors = None,
    *,
    profile: options.ProfileOption = options.Profile.smoke,
    store: options.StoreOption = options.STORE,
    data: options.DataOption = None,
    device: options.DeviceOption = options.Device.auto,
    workers: options.Workers = 1,
    budget: options.Budget = None,
    out: Annotated[Path, place("folder for figures and report")] = Path("report"),
    accept: Annotated[bool, typer.Option("--accept", help="commit these verdicts as the expected ones")] = False,
) -> None:
    """The main job: run, check, figures and report. Exit 0 when every verdict equals the committed one."""
    from suite.commands.reproduce import reproduce_selection
    from suite.commands.run import RunOptions
    from suite.files import check_writable

    check_writable(out)
    asked = RunOptions(profile, store, data, device, workers, budget)
    raise typer.Exit(reproduce_selection(selector or [], asked, out, accept))


data_app = typer.Typer(help="Data sets: list, fetch, verify.", no_args_is_help=True)


@data_app.command("list")
def data_list(*, data: options.DataOption = None, as_json: options.Json = False) -> None:
    """The data sets the papers use, and whether they are here."""
    from suite.commands.terminal import show
    from suite.data.catalogue import DATASETS, available

    rows = [{"name": name, **dict(zip(("here", "where"), available(name, data), strict=True))} for name in DATASETS]
    if as_json:
        emit(rows)
    else:
        show(f"{row['name']:<20} {'here' if row['here'] else 'missing':<8} {row['where']}" for row in rows)


@data_app.command("fetch")
def data_fetch(name: options.DatasetName, *, data: options.DataOption = None) -> None:
    """Download a data set at its pinned revision, and say where nobody knows what its files must be."""
    from suite.data.catalogue import dataset
    from suite.data.fetch import fetch

    folder = fetch(name, data)
    print(folder or f"{name} is embedded: nothing to download")
    if folder and not dataset(name).sha256:
        say(f"{name}: no SHA-256 of its files is known, so they were not checked; data verify compares counts")


@data_app.command("verify")
def data_verify(names: options.DatasetNames = None, *, data: options.DataOption = None) -> None:
    """Compare data sets, or all that are here, with the sizes, labels and contents they must have.

    Exit 1 when one differs.
    """
    from suite.data.catalogue import DATASETS, available
    from suite.data.verify import verify

    reports = [verify(each, data) for each in names or [n for n in DATASETS if available(n, data)[0]]]
    for found in reports:
        for part in found.checks:
            print(f"{found.name:<20} {'ok' if part.passed else 'WRONG':<6} {part.name}: {part.detail}")
    raise typer.Exit(0 if all(found.passed for found in reports) else 1)


def doctor(
    *,
    data: options.DataOption = None,
    store: Annotated[Path | None, place("test the file system of this store with two processes", "--store")] = None,
    as_json: options.Json = False,
) -> None:
    """This machine: versions, devices, data found, which profiles can run. Exit 1 where --store cannot be shared."""
    from suite.commands.doctor import diagnose, lines
    from suite.commands.terminal import show

    facts = diagnose(data, store)
    if as_json:
        emit(facts)
    else:
        show(lines(facts))
    raise typer.Exit(0 if facts.get("store", {"ok": True})["ok"] else 1)


ShortName = Annotated[str, typer.Argument(metavar="NAME", help="short name, as in NAME/fig1")]
Into = Annotated[Path | None, place("folder to make; default NAME")]


def new_paper_(name: ShortName, *, into: Into = None) -> None:
    """Make a package for another paper, which registers itself: an algorithm, its claims, a figure and tests."""
    from suite.commands.new_paper import new_package

    print("\n".join(new_package(name, into)))


def new_experiment_(name: ShortName, *, into: Into = None) -> None:
    """Make a package for an experiment of one's own: a network, data, methods and settings in forty lines."""
    from suite.commands.new_paper import new_package

    print("\n".join(new_package(name, into, "experiment")))
