"""Commands about what the runs stand on: data sets, this machine, papers from other packages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.cli.options import DataOption, DatasetName, DatasetNames, Json, a_path
from suite.cli.output import emit, say

data_app = typer.Typer(help="Data sets: list, fetch, verify.", no_args_is_help=True)


@data_app.command("list")
def data_list(*, data: DataOption = None, as_json: Json = False) -> None:
    """The data sets the papers use, and whether they are here."""
    from suite.commands.terminal import show
    from suite.data.catalogue import DATASETS, available

    rows = [{"name": name, **dict(zip(("here", "where"), available(name, data), strict=True))} for name in DATASETS]
    if as_json:
        emit(rows)
    else:
        show(f"{row['name']:<16} {'here' if row['here'] else 'missing':<8} {row['where']}" for row in rows)


@data_app.command("fetch")
def data_fetch(name: DatasetName, *, data: DataOption = None) -> None:
    """Download a data set at its pinned revision, and say where nobody knows what its files must be."""
    from suite.data.catalogue import dataset, fetch

    folder = fetch(name, data)
    print(folder or f"{name} is embedded: nothing to download")
    if folder and not dataset(name).sha256:
        say(f"{name}: no SHA-256 of its files is known, so they were not checked; data verify compares counts")


@data_app.command("verify")
def data_verify(names: DatasetNames = None, *, data: DataOption = None) -> None:
    """Compare data sets, or all that are here, with the sizes, labels and contents they must have.

    Exit 1 when one differs.
    """
    from suite.data.catalogue import DATASETS, available
    from suite.data.verify import verify

    reports = [verify(each, data) for each in names or [n for n in DATASETS if available(n, data)[0]]]
    for found in reports:
        for part in found.checks:
            print(f"{found.name:<16} {'ok' if part.passed else 'WRONG':<6} {part.name}: {part.detail}")
    raise typer.Exit(0 if all(found.passed for found in reports) else 1)


def doctor(
    *,
    data: DataOption = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", help="test the file system of this store with two processes", metavar="D", parser=a_path
        ),
    ] = None,
    as_json: Json = False,
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
Into = Annotated[Path | None, typer.Option(help="folder to make; default NAME", metavar="D", parser=a_path)]


def new_paper_(name: ShortName, *, into: Into = None) -> None:
    """Make a package for another paper, which registers itself: an algorithm, its claims, a figure and tests."""
    from suite.commands.new_paper import new_package

    print("\n".join(new_package(name, into)))


def new_experiment_(name: ShortName, *, into: Into = None) -> None:
    """Make a package for an experiment of one's own: a network, data, methods and settings in thirty lines."""
    from suite.commands.new_paper import new_package

    print("\n".join(new_package(name, into, "experiment")))
