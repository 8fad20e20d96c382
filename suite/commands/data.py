"""Data sets: list, fetch, verify."""

from __future__ import annotations

import typer

from suite.commands import options
from suite.commands.output import folded, result, say
from suite.data.catalogue import DATASETS, available
from suite.data.fetch import fetch

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_sets(*, data: options.DataOption = None, as_json: options.Json = False) -> None:
    """The data sets the papers use, and whether they are here."""
    rows = [{"name": name, **dict(zip(("here", "where"), available(name, data), strict=True))} for name in DATASETS]
    lines = (f"{row['name']:<20} {'here' if row['here'] else 'missing':<8} {row['where']}" for row in rows)
    result(rows, folded(lines), as_json)


@app.command("fetch")
def fetch_set(name: options.DatasetName, *, data: options.DataOption = None) -> None:
    """Download a data set at its pinned revision, and say where nobody knows what its files must be."""
    folder = fetch(name, data)
    print(folder or f"{name} is embedded: nothing to download")
    if folder and not DATASETS[name].sha256:
        say(f"{name}: no SHA-256 of its files is known, so they were not checked; data verify compares counts")


@app.command("verify")
def verify_sets(names: options.DatasetNames = None, *, data: options.DataOption = None) -> None:
    """Compare data sets, or all that are here, with the sizes, labels and contents they must have.

    Exit 1 when one differs.
    """
    from suite.data.verify import verify  # with torch, which `data list` must not wait for

    wanted = names or [name for name in DATASETS if available(name, data)[0]]
    checks = [(name, check) for name in wanted for check in verify(name, data)]
    for name, check in checks:
        print(f"{name:<20} {'ok' if check.passed else 'WRONG':<6} {check.name}: {check.detail}")
    raise typer.Exit(0 if all(check.passed for _, check in checks) else 1)
