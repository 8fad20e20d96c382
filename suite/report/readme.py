"""The README's tables of verdicts and of speed, generated from what is committed so that they say nothing else.

``python -m suite.report.readme`` exits with 1 when a table is out of date; ``--write`` brings both up to date.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from suite.claims.judge import VERDICTS, Verdict
from suite.papers.evidence import committed
from suite.papers.registry import PAPERS, paper
from suite.report import speed
from suite.report.numerals import ours, printed
from suite.report.page import all_verdicts, counts
from suite.runs.archive import Layered, Runs
from suite.runs.environment import ROOT

BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"
SPEED = ("<!-- speed:begin -->", "<!-- speed:end -->")
PER_PAPER = 3  # results told in words, for each paper


class ReadmeError(ValueError):
    """A README that has no place for the table."""


def table(verdicts: Sequence[Verdict]) -> str:
    """Verdict counts per paper, empirical claims first, then the most telling empirical results; Markdown."""
    by_paper: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_paper.setdefault(verdict.claim.paper, []).append(verdict)
    parts = []
    for kind, title in (("empirical", "Empirical claims"), ("definitions", "Definitions and arithmetic")):
        rows = [_row(name, counts(found)[kind]) for name, found in by_paper.items()]
        rows.append(_row("all", counts(verdicts)[kind]))
        head = ["| " + " | ".join((title, *VERDICTS, "claims")) + " |", "|---" + "|--:" * (len(VERDICTS) + 1) + "|"]
        parts.append("\n".join(head + rows))
    told = [_sentence(v) for found in by_paper.values() for v in telling(found)]
    if told:
        parts.append("Some of the empirical results:\n\n" + "\n".join(told))
    return "\n\n".join(parts)


def _row(name: str, tally: Counter[str]) -> str:
    return f"| {name} | " + " | ".join(str(tally[v]) for v in VERDICTS) + f" | {tally.total()} |"


def telling(found: Iterable[Verdict], most: int = PER_PAPER) -> list[Verdict]:
    """A paper's decided empirical claims worth a sentence: what failed and taught something, then what was
    measured (rather than simulated or exact) at the largest number of repetitions; in the paper's order if equal."""
    decided = [v for v in found if v.claim.empirical and v.measured and v.verdict not in ("not run", "inconclusive")]
    return sorted(decided, key=_weight)[:most]


def _weight(verdict: Verdict) -> tuple[bool, bool, bool, int]:
    assert verdict.measured is not None
    return (
        not verdict.claim.finding,
        verdict.verdict == "reproduced" and verdict.claim.rule == "holds",  # "holds" reads badly without numbers
        verdict.measured.kind != "measured",
        -verdict.measured.n,
    )


def _sentence(verdict: Verdict) -> str:
    claim, measured = verdict.claim, verdict.measured
    assert measured is not None
    repetitions = f", n = {measured.n}" if measured.n > 1 else ""
    text = (
        f"- **{verdict.verdict}** (`{claim.artifact}`): {claim.says.rstrip('.')}. Printed: {_few(printed(claim))}; "
        f"ours: {_few(ours(measured, claim))} ({measured.kind}, {verdict.profile} profile{repetitions})."
    )
    return f"{text} {verdict.why[:1].upper()}{verdict.why[1:].rstrip('.')}." if claim.finding else text


def _few(texts: Sequence[str]) -> str:
    shown = ", ".join(texts[:4])
    return f"{shown}, and {len(texts) - 4} more" if len(texts) > 4 else shown


def rewritten(text: str, block: str, markers: tuple[str, str] = (BEGIN, END)) -> str:
    """The README's text with the block between the markers replaced. Raises ReadmeError without the markers."""
    begin, end = markers
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ReadmeError(f"README.md must hold {begin} once and, after it, {end} once: the table goes between them")
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{block}\n{end}{rest.partition(end)[2]}"


def judged(source: Runs) -> list[Verdict]:
    """Every claim of every paper on the evidence of ``source``, each at the largest profile that decides it."""
    return [verdict for name in PAPERS for verdict in all_verdicts(paper(name), source)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m suite.report.readme", description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the tables instead of comparing them")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md", metavar="F")
    chosen = parser.parse_args(arguments)
    try:
        old = chosen.readme.read_text(encoding="utf-8")
        new = rewritten(old, table(judged(Layered(committed()))))
        new = rewritten(new, speed.tables(speed.committed()), SPEED)
        if chosen.write and new != old:
            chosen.readme.write_text(new, encoding="utf-8")
    except (ValueError, OSError) as error:
        print(f"{chosen.readme.name}: {error}", file=sys.stderr)
        return 2
    if new == old or chosen.write:
        return 0
    print(f"{chosen.readme.name} is out of date: python -m suite.report.readme --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
