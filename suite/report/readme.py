"""The README's tables of verdicts and of speed, generated from what is committed so that they say nothing else.

``python -m suite.report.readme`` exits with 1 when a table is out of date; ``--write`` brings both up to date.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from suite.claims.board import EMPIRICAL, NOTHING, WORDS, board
from suite.claims.judge import VERDICTS, Verdict
from suite.papers.evidence import committed
from suite.papers.registry import PAPERS, paper
from suite.report import speed
from suite.report.numerals import ours, printed
from suite.report.page import all_verdicts
from suite.runs.archive import Layered, Runs
from suite.runs.environment import ROOT

BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"
SPEED = ("<!-- speed:begin -->", "<!-- speed:end -->")
PER_PAPER = 3  # results told in words, for each paper


class ReadmeError(ValueError):
    """A README that has no place for the table."""


def table(verdicts: Sequence[Verdict]) -> str:
    """The two boards, the papers' shares in them, then the most telling empirical results; Markdown."""
    by_paper: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_paper.setdefault(verdict.claim.paper, []).append(verdict)
    counted = board(verdicts)
    parts = [
        _table("Empirical claims, by what they rest on", VERDICTS, counted.empirical),
        _table("Properties and statements", tuple(WORDS.values()), counted.properties),
        _table("Empirical claims of each paper", (*EMPIRICAL, NOTHING), _by_paper(by_paper)),
    ]
    if told := [_sentence(v) for found in by_paper.values() for v in telling(found)]:
        parts.append("Some of the empirical results:\n\n" + "\n".join(told))
    return "\n\n".join(parts)


def _by_paper(by_paper: Mapping[str, Sequence[Verdict]]) -> dict[str, Counter[str]]:
    boards = {name: board(found).empirical for name, found in by_paper.items()}
    return {name: Counter({row: counts.total() for row, counts in rows.items()}) for name, rows in boards.items()}


def _table(title: str, columns: Sequence[str], rows: Mapping[str, Counter[str]]) -> str:
    total = sum(rows.values(), Counter[str]())
    text = ["| " + " | ".join((title, *columns, "claims")) + " |", "|---" + "|--:" * (len(columns) + 1) + "|"]
    for name, tally in [*rows.items(), ("all", total)]:
        text.append(f"| {name} | " + " | ".join(str(tally[c]) for c in columns) + f" | {tally.total()} |")
    return "\n".join(text)


def telling(found: Iterable[Verdict], most: int = PER_PAPER) -> list[Verdict]:
    """A paper's empirical results worth a sentence: what rests on the best evidence first, of those what failed and
    taught something, then the largest number of repetitions; in the paper's order if equal."""
    decided = [v for v in found if v.rests_on in EMPIRICAL and v.verdict not in ("not run", "inconclusive")]
    return sorted(decided, key=_weight)[:most]


def _weight(verdict: Verdict) -> tuple[int, bool, bool, int]:
    assert verdict.measured is not None
    return (
        EMPIRICAL.index(verdict.rests_on),
        not verdict.claim.finding,
        verdict.verdict == "reproduced" and verdict.claim.rule == "holds",  # "holds" reads badly without numbers
        -verdict.measured.n,
    )


def _sentence(verdict: Verdict) -> str:
    claim, measured = verdict.claim, verdict.measured
    assert measured is not None
    repetitions = f", n = {measured.n}" if measured.n > 1 else ""
    rests = f"{verdict.rests_on}: {verdict.because}" if verdict.because else verdict.rests_on
    text = (
        f"- **{verdict.verdict}** (`{claim.artifact}`): {claim.says.rstrip('.')}. Printed: {_few(printed(claim))}; "
        f"ours: {_few(ours(measured, claim))} ({rests}{repetitions})."
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
