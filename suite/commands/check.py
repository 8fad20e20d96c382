"""A verdict for every claim. Exit 1 when one is red."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from suite.claims.board import board, in_full, proxy_says, word
from suite.claims.board import lines as board_lines
from suite.claims.estimate import Estimate
from suite.claims.judge import PROFILES, Verdict
from suite.clock import counted
from suite.commands import options
from suite.commands.output import source, width
from suite.files import check_file
from suite.papers.catalogue import entries, ids_of_user, select
from suite.papers.measurement import judge_artifacts, measure, measurements
from suite.report.numerals import few, printed, values
from suite.report.verdict_details import shown
from suite.runs.archive import Runs
from suite.runs.comparison import Survey
from suite.runs.run import write

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
NARROWEST = 80  # columns
UNFOLDED = ("rests on", "ours [95%]")  # columns of a table whose cells stay on one line
NAMES = 32  # columns of a claim's name on its line
OF_THE_CLAIM = ("needs", "says", "where", "printed", "basis", "unit", "rule", "because", "empirical")  # in JSON


def command(
    selector: options.Selectors = None,
    *,
    profile: Annotated[options.Profile | None, typer.Option(help="judge at this profile only")] = None,
    store: options.SourceOption = None,
    only_mine: options.OnlyMine = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="the reason of every verdict")] = False,
    as_json: options.Json = False,
    junit: Annotated[Path | None, options.place("write JUnit XML", metavar="F")] = None,
) -> None:
    selectors, runs, own = selector or [], source(store, only_mine), ids_of_user(store)
    if junit:
        check_file(junit)
    found = judge_selection(selectors, profile, runs)
    if junit:
        write_junit(found, junit)
    if as_json:
        print(json.dumps([row(v) for v in found], indent=1, allow_nan=False))
    else:
        shown = bool(selectors) and show_unclaimed(selectors, profile, runs)
        if found or not shown:
            show(found, verbose=verbose, closing=[*board_lines(board(found)), evidence(found, own)])
    several = held_twice(selectors, profile, runs)
    for line in several.lines():
        print(line, file=sys.stderr)
    raise typer.Exit(1 if several.contested or any(v.red for v in found) else 0)


def console() -> Console:
    """Standard output, as wide as all commands write, and wide enough that no column of a table is cut off."""
    return Console(file=sys.stdout, width=max(width(), NARROWEST), highlight=False)


def table(found: Sequence[Verdict]) -> Table:
    """The claims of one artifact, one row each under its id; what a verdict rests on where one of them says."""
    graded = any(verdict.rests_on for verdict in found)
    made = sheet(found[0].claim.artifact, "printed", "ours", *(["rests on"] if graded else []), "verdict")
    for verdict in found:
        name = Text("  " + folded(verdict.claim.id.rpartition("/")[2], NAMES).replace("\n", "\n  "))
        cells = [name, Text(few(printed(verdict.claim))), Text(shown(verdict))]
        made.add_row(*cells, *([Text(verdict.rests_on)] if graded else []), coloured(verdict))
    return made


def sheet(first: str, *others: str) -> Table:
    """An empty table of these columns, of which the first is never folded."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    made.add_column(first, no_wrap=True)
    for title in others:
        made.add_column(title, no_wrap=title in UNFOLDED)
    return made


def coloured(verdict: Verdict) -> Text:
    """The verdict in its colour; a red one is marked where there are no colours, too."""
    if verdict.red:
        return Text(f"RED {in_full(verdict)}", "bold red")
    return Text(in_full(verdict) + (", disputed" if verdict.disputed else ""), STYLES[word(verdict)])


def folded(name: str, width: int) -> str:
    """A claim's name in lines of at most ``width`` characters, broken after a hyphen where that suffices."""
    lines = [""]
    for piece in re.findall(r"[^-]*-|[^-]+", name):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def show(found: Sequence[Verdict], *, verbose: bool, closing: Sequence[str]) -> None:
    out = console()
    for _, claims in groupby(found, key=lambda verdict: verdict.claim.artifact):
        out.print(table(list(claims)))
        out.print()
    reasons = [f"{each.claim.id}: {each.why}" for each in found if verbose or each.red or each.disputed]
    for line in (*reasons, *closing):
        out.print(line, markup=False)


def judge_selection(selectors: Sequence[str], profile: str | None, source: Runs) -> list[Verdict]:
    """Verdicts of all claims of a selection, in the papers' order."""
    judged: list[Verdict] = []
    for paper, artifacts in select(selectors):
        judged += judge_artifacts(paper, [artifact.id for artifact in artifacts], profile, source)
    return judged


def _measured(measured: Estimate | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    clean = lambda numbers: [n if abs(n) != float("inf") and n == n else str(n) for n in numbers]
    spans = {name: clean(getattr(measured, name)) for name in ("values", "low", "high")}
    return spans | {"n": measured.n, "runs": list(measured.runs), "note": measured.note}


def row(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values."""
    claim = verdict.claim
    return {
        "id": claim.id,
        **{name: getattr(verdict, name) for name in ("verdict", "red", "disputed", "why", "profile")},
        "decided_from": claim.profile,
        **{name: getattr(claim, name) for name in OF_THE_CLAIM},
        "rests_on": verdict.rests_on,
        "rests_because": verdict.because,
        "settings": verdict.settings,
        "order": verdict.order,
        "exploratory": row(verdict.exploratory) if verdict.exploratory else None,
        "decides": verdict.decides,
        "family": verdict.family,
        "proxy_says": proxy_says(verdict),
        "ours": _measured(verdict.measured),
        "proxy": _measured(verdict.proxy),
    }


def evidence(found: Sequence[Verdict], own: Collection[str]) -> str:
    """Whose runs the verdicts were read from; ``own`` are the ids of the runs in the user's store."""
    ids = {run for v in found for measured in (v.measured, v.proxy) if measured for run in measured.runs}
    return f"evidence: {len(ids.intersection(own))} yours, {len(ids.difference(own))} committed"


def write_junit(found: Sequence[Verdict], path: Path) -> None:
    """JUnit XML: a failure per red claim, a skip per claim that was not run."""
    red = sum(v.red for v in found)
    skipped = sum(v.verdict == "not run" for v in found)
    suite = ElementTree.Element(
        "testsuite", name="claims", tests=str(len(found)), failures=str(red), skipped=str(skipped)
    )
    for v in found:
        case = ElementTree.SubElement(suite, "testcase", classname=v.claim.artifact, name=v.claim.id)
        if v.red:
            ElementTree.SubElement(case, "failure", message=v.verdict).text = v.why
        elif v.verdict == "not run":
            ElementTree.SubElement(case, "skipped", message=v.why)
    write(path, ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
    print(f"{counted(len(found), 'claim')} written to {path}", file=sys.stderr)


def show_unclaimed(selectors: Sequence[str], profile: str | None, source: Runs) -> bool:
    """Print what artifacts without any claim measure, at the largest profile with evidence; whether there is any."""
    shown = False
    for paper, artifacts in select(selectors):
        claimed = {entry.artifact for entry in entries(paper.name)}
        for artifact in artifacts:
            if artifact.id in claimed:
                continue
            for each in [profile] if profile else reversed(PROFILES):
                if quantities := measure(artifact, source, each, claimed=False).found:
                    rows = sheet(f"{artifact.id} at {each}, without a claim", "ours [95%]", "seeds")
                    for name, value in quantities.items():
                        rows.add_row(f"  {name}", ", ".join(values(value)), str(value.n))
                    console().print(rows)
                    console().print()
                    shown = True
                    break
    return shown


def held_twice(selectors: Sequence[str], profile: str | None, source: Runs) -> Survey:
    """What the source holds in several versions of the runs that a selection reads."""
    several = Survey()
    for _, artifacts in select(selectors):
        for artifact in artifacts:
            for measurement in measurements(artifact, source, profile, claimed=True).values():
                several.add(measurement.survey)
    return several
