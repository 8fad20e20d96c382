"""Verdicts as a table: what is claimed, what is printed, what was measured, and the judge's word."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from suite.claims.board import said, stand_in, word
from suite.claims.judge import Verdict
from suite.commands.terminal import width
from suite.report.numerals import few, ours, printed

STYLES = {
    "holds": "green",
    "does not hold": "yellow",
    "reproduced": "green",
    "not reproduced": "yellow",  # with a finding; a red one is bold red
    "inconclusive": "yellow",
    "not run": "dim",
    "no visible difference": "cyan",
    "undetermined": "dim",
    "bound to the paper's machine": "dim",
    "paper contradicts itself": "magenta",
}
NAMES = 32  # columns of a claim's name on its line


def console() -> Console:
    """Standard output, as wide as all commands write."""
    return Console(file=sys.stdout, width=width(), highlight=False)


def table(found: Sequence[Verdict]) -> Table:
    """The claims of one artifact, one row each under its id; what a verdict rests on where one of them says."""
    graded = any(verdict.rests_on for verdict in found)
    made = sheet(found[0].claim.artifact, "printed", "ours", *(["rests on"] if graded else []), "verdict")
    if graded:
        made.columns[3].no_wrap = True
    for verdict in found:
        name = Text("  " + folded(verdict.claim.id.rpartition("/")[2], NAMES).replace("\n", "\n  "))
        cells = [name, Text(few(printed(verdict.claim))), Text(measured(verdict))]
        made.add_row(*cells, *([Text(verdict.rests_on)] if graded else []), coloured(verdict))
    return made


def sheet(first: str, *others: str) -> Table:
    """An empty table of these columns, of which the first is never folded."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    made.add_column(first, no_wrap=True)
    for title in others:
        made.add_column(title)
    return made


def measured(verdict: Verdict) -> str:
    """Our value with its interval and unit; one that decides nothing says so."""
    if verdict.measured:
        return few(ours(verdict.measured, verdict.claim))
    if not verdict.proxy:
        return ""
    speaks = stand_in(verdict)
    label = "shown only" if speaks == "number" else f"stand-in, {speaks}"
    return f"{label}: {few(ours(verdict.proxy, verdict.claim))}"


def coloured(verdict: Verdict) -> Text:
    """The verdict in its colour; a red one is marked where there are no colours, too."""
    if verdict.red:
        return Text(f"RED {said(verdict)}", "bold red")
    return Text(said(verdict) + (", disputed" if verdict.disputed else ""), STYLES[word(verdict)])


def folded(name: str, width: int) -> str:
    """A claim's name in lines of at most ``width`` characters, broken after a hyphen where that suffices."""
    lines = [""]
    for piece in re.findall(r"[^-]*-|[^-]+", name):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def reasons(found: Sequence[Verdict], *, every: bool) -> list[str]:
    """Why the judge said so: of the red and the disputed claims, or of ``every`` one."""
    return [f"{verdict.claim.id}: {verdict.why}" for verdict in found if every or verdict.red or verdict.disputed]


def show(found: Sequence[Verdict], *, verbose: bool, closing: Sequence[str]) -> None:
    """Print a table for each artifact, the reasons and the closing lines on standard output."""
    out = console()
    for _, claims in groupby(found, key=lambda verdict: verdict.claim.artifact):
        out.print(table(list(claims)))
        out.print()
    for line in (*reasons(found, every=verbose), *closing):
        out.print(line, markup=False)
