"""Commands about verdicts and what they rest on: check, explain, register; and the board of all methods."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.cli.options import Json, OnlyMine, Profile, Selectors, SourceOption, a_path
from suite.cli.output import say, source


def check(
    selector: Selectors = None,
    *,
    profile: Annotated[Profile | None, typer.Option(help="judge at this profile only")] = None,
    store: SourceOption = None,
    only_mine: OnlyMine = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="the reason of every verdict")] = False,
    as_json: Json = False,
    junit: Annotated[Path | None, typer.Option(help="write JUnit XML", metavar="F", parser=a_path)] = None,
) -> None:
    """A verdict for every claim. Exit 1 when one is red."""
    from suite.commands.check import check_selection
    from suite.papers.evidence import ids_of_user
    from suite.runs.files import check_file

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
    store: SourceOption = None,
    only_mine: OnlyMine = False,
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
    from suite.commands.register import register as append

    for sentence in append(because, papers or []):
        print(sentence)


def together(
    *,
    task: Annotated[str, typer.Option(help="mnist or cifar10")] = "mnist",
    budget: Annotated[int | None, typer.Option(min=1, help="gradient evaluations; by default the task's own")] = None,
    profile: Annotated[Profile, typer.Option(help="whose runs are read")] = Profile.reduced,
    store: SourceOption = None,
    only_mine: OnlyMine = False,
) -> None:
    """All methods on one task at equal budget, against SGD: a table on one screen. Exit 1 without the runs of SGD."""
    from suite.commands.together import board
    from suite.papers.artifact import Missing

    try:
        print("\n".join(board(task, profile, budget, source(store, only_mine))))
    except Missing as error:
        say(str(error))
        raise typer.Exit(1) from None
