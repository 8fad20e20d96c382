"""All methods on one task at equal budget, against SGD: a table on one screen. Exit 1 without the runs of SGD."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from suite.commands import options
from suite.commands.output import folded, say, source, width
from suite.lazy import pd
from suite.papers.artifact import Missing
from suite.papers.catalogue import SelectorError, paper
from suite.runs.archive import Runs

PAPER = "together"
WITH_INTERVAL = ("gradients", "rounds")  # scores that are shown with their interval


def command(
    *,
    task: Annotated[str, typer.Option(help="mnist, cifar10, cifar100 or multi30k")] = "mnist",
    budget: Annotated[int | None, typer.Option(min=1, help="gradient evaluations; by default the task's own")] = None,
    profile: Annotated[options.Profile, typer.Option(help="whose runs are read")] = options.Profile.reduced,
    store: options.SourceOption = None,
    only_mine: options.OnlyMine = False,
) -> None:
    try:
        print("\n".join(board(task, profile, budget, source(store, only_mine))))
    except Missing as error:
        say(str(error))
        raise typer.Exit(1) from None


def board(task: str, profile: str, budget: int | None, source: Runs) -> list[str]:
    """The lines of the board of a task: every method against SGD with one learner.

    Args:
        task: its name, such as "mnist".
        profile: whose runs are read.
        budget: gradient evaluations after which a target counts as missed; None: the task's own.
        source: the stored runs.

    Raises:
        SelectorError: there is no such task.
        Missing: the runs of SGD, to which all are compared, are not stored.
    """
    tasks = {artifact.id.partition("/")[2]: artifact for artifact in paper(PAPER).artifacts}
    if task not in tasks:
        raise SelectorError(f"there is no task {task!r}; the tasks are {', '.join(tasks)}")
    artifact = tasks[task]
    assert artifact.frame is not None
    try:
        table = artifact.frame(artifact.read(source, profile), budget=budget)
    except Missing as error:
        cure = f"sgd-suite run {artifact.id} --profile {profile} --data DIR computes them"
        raise Missing(f"{artifact.id}: not run ({error}); {cure}") from None
    stored = source.ids()
    absent = [group for group, specs in artifact.runs(profile).items() if not stored.issuperset(s.id for s in specs)]
    notes = [f"not run: {', '.join(absent)}"] if absent else []
    return [*folded([artifact.title]), "", *rows(table, width()), "", *folded((*NOTES, *notes))]


NOTES = (
    "Scores until the target, relative to SGD with one learner; 95% over seeds, not over the luck of tuning.",
    "* differs from SGD at 5% after Holm over the methods; ≥ a seed missed the target; ^ best rate at the edge.",
    "Where none of the seeds arrived, the bound is the budget over SGD's arrivals, and has no interval.",
    "≤ a seed of SGD missed it; - seeds of both did, so that there is no ratio.",
    "Test errors are those of the whole budget; a seed that diverged counts as 90%.",
    "Rounds are gradients that one learner computes after another. Under a link's speed stand seconds, modelled.",
)
SIGNS = {">=": "≥", "<=": "≤", "": ""}


def rows(table: pd.DataFrame, most: int) -> list[str]:
    """Head and rows, columns aligned; one block under another where they need more than ``most`` characters."""
    links = [score for score in table["score"].unique() if score not in (*WITH_INTERVAL, "test error")]
    body = [["method", "k", "reached", *WITH_INTERVAL, *links, "test error %"]]
    for (method, learners), part in table.groupby(["method", "learners"], sort=False):
        scores = {row["score"]: row for _, row in part.iterrows()}
        error, any_row = scores["test error"], part.iloc[0]
        body.append(
            [
                f"{method}{'^' if any_row['edge'] else ''}",
                str(learners),
                f"{any_row['reached']} of {any_row['seeds']}",
                *[cell(scores[name], interval=True) for name in WITH_INTERVAL],
                *[cell(scores[name]) for name in links],
                f"{100 * error['value']:.2f}{'*' if error['says'] else ''}",
            ]
        )
    padded = [[text.ljust(max(map(len, column))) for text in column] for column in zip(*body, strict=True)]
    text: list[str] = []
    for block in blocks(padded, most):
        text += [""] * bool(text) + ["  ".join(row).rstrip() for row in zip(*block, strict=True)]
    return text


def blocks(columns: Sequence[Sequence[str]], most: int) -> Iterator[Sequence[Sequence[str]]]:
    """The columns in blocks of at most ``most`` characters, two between columns; each begins with method and k."""
    names, others = columns[:2], columns[2:]
    block = [*names]
    for column in others:
        if sum(len(each[0]) + 2 for each in (*block, column)) - 2 > most and len(block) > len(names):
            yield block
            block = [*names]
        block.append(column)
    yield block


def cell(row: pd.Series, *, interval: bool = False) -> str:
    """A ratio to SGD with its marks."""
    if row["bound"] == "<>":
        return "-"
    if row["ratio"] == row["low"] == row["high"] == 1:
        return "1"
    between = ""
    if interval and not row["reached"]:
        between = f" none of {row['seeds']}"
    elif interval and row["low"] < row["high"]:
        between = f" [{row['low']:.2f}, {row['high']:.2f}]"
    return f"{SIGNS[row['bound']]}{row['ratio']:.2f}{'*' if row['says'] else ''}{between}"
