"""What the results pages lead with: a line per paper, the findings, the papers' contradictions, the place of each id.

A finding joins claims that one experiment decides. Its sentences *the paper says* and *what decides* stand in
``findings.toml`` beside the papers; *we have* is made of the verdicts on its claims.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from suite.claims.board import EMPIRICAL, STAND_INS, on_one_run, said, stand_in
from suite.claims.judge import CLAIM, CONTRADICTION, TEST, VERDICTS, Claim, Verdict
from suite.papers.catalogue import entries, homes, papers_of, places
from suite.papers.register import LATE, read
from suite.report.numerals import markdown, ours, printed

FILE = "findings.toml"
DECIDED = ("reproduced", "not reproduced", "no visible difference")
SHOWN = 2  # numbers of one finding


class FindingError(ValueError):
    """A finding that names no claim, or one that another has."""


@dataclass(frozen=True)
class Finding:
    """What a paper says, in our words, what would decide it, and the claims that say it (ids or globs)."""

    paper: str
    says: str
    decides: str
    claims: Sequence[str]

    def of(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """The verdicts on its claims. Raises FindingError for a name that means none of them."""
        mine = [v for v in verdicts if v.claim.paper == self.paper]
        moved = places()
        names = [f"{self.paper}/{name}" for name in self.claims]
        names = [moved[name].target if name in moved else name for name in names]
        if lost := [name for name in names if not any(fnmatchcase(v.claim.id, name) for v in mine)]:
            raise FindingError(f"finding {self.says!r} names {lost[0]!r}, which is no claim of the board")
        return [v for v in mine if any(fnmatchcase(v.claim.id, name) for name in names)]


def findings(home: Path) -> list[Finding]:
    """The findings of a home, in their order; none without a table."""
    path = home / FILE
    if not path.exists():
        return []
    return [Finding(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["finding"]]


def findings_told(found: Iterable[Finding], verdicts: Sequence[Verdict]) -> str:
    """A table of the findings, paper by paper; Markdown."""
    rows = [(f.paper, (i, f.says, have(f.of(verdicts)), f.decides)) for i, f in enumerate(found, 1)]
    return _by_paper("###", ["", "the paper says", "we have", "what decides"], rows, "rlll")


def _by_paper(heading: str, head: Sequence[str], rows: Iterable[tuple[str, Iterable[object]]], align: str) -> str:
    """A table for each paper below its name."""
    parts = []
    for paper, own in groupby(rows, itemgetter(0)):
        parts += [f"{heading} `{paper}`", markdown(head, (cells for _, cells in own), align)]
    return "\n\n".join(parts)


def have(found: Sequence[Verdict]) -> str:
    """What the verdicts of a finding come to: its numbers, first the decided ones, then counts of the others."""
    told = sorted((v for v in found if v.measured), key=_strength)[:SHOWN]
    text = [number_of(verdict) for verdict in told]
    left = Counter(verdict.verdict for verdict in found) - Counter(verdict.verdict for verdict in told)
    text += [f"{left[word]} {word}" for word in VERDICTS if left[word]]
    beside = speaking(found)
    return "; ".join([*text, *([f"stand-ins: {beside}"] if beside else [])])


def speaking(found: Iterable[Verdict]) -> str:
    """How many stand-ins speak for, and how many against, claims that were not run."""
    words = Counter(map(stand_in, found))
    return ", ".join(f"{words[word]} {word}" for word in STAND_INS.values() if words[word])


def number_of(verdict: Verdict) -> str:
    """A claim's number beside the printed one, its verdict and scale, and what a later or corrected rule says."""
    assert verdict.measured is not None
    claim = verdict.claim
    number = ", ".join(ours(verdict.measured, claim)[:3])
    said_there = [text.removesuffix(f" {claim.unit}") for text in printed(claim)[:3]]
    asked = "" if claim.rule in ("order", "holds") else f"printed {', '.join(said_there)}; "
    beside = f"; exploratory: {verdict.exploratory.verdict}" if verdict.exploratory else ""
    return f"`{claim.id.partition('/')[2]}` {number} ({asked}{said(verdict)}, {verdict.rests_on}{beside})"


def _strength(verdict: Verdict) -> tuple[bool, int, bool, bool, bool, int]:
    """Sorts what decides first, then by scale, what has an interval, what is told in numbers, and repetitions."""
    ours = verdict.measured
    assert ours is not None
    scale = EMPIRICAL.index(verdict.rests_on) if verdict.rests_on in EMPIRICAL else len(EMPIRICAL)
    wide = any(low < high for _, low, high in ours.spans)
    settled = verdict.decides and verdict.verdict in DECIDED
    return not settled, scale, not wide, verdict.claim.rule == "holds", bool(verdict.exploratory), -ours.n


def board_of_papers(verdicts: Sequence[Verdict]) -> str:
    """A line per paper: claims decided, of how many, what stand-ins say of others, the strongest number; Markdown."""
    rows = []
    for paper in dict.fromkeys(v.claim.paper for v in verdicts):
        mine = [v for v in verdicts if v.claim.paper == paper and v.claim.kind == CLAIM and not v.claim.row_of]
        mine = [v for v in mine if v.rests_on in ("", *EMPIRICAL)]
        decided = sum(v.decides and v.verdict in DECIDED for v in mine)
        best = min((v for v in mine if v.measured), key=_most_telling, default=None)
        rows.append((f"`{paper}`", decided, len(mine), speaking(mine), _strongest(best) if best else "none"))
    return markdown(["paper", "decided", "claims", "stand-ins", "strongest number"], rows, "lrrll")


def _most_telling(verdict: Verdict) -> tuple[object, ...]:
    """Sorts what an earlier rule decided and no later one doubts; then by scale, and in more than one run."""
    scale = EMPIRICAL.index(verdict.rests_on)
    doubted = bool(verdict.exploratory) or _unbounded(verdict) or verdict.order == LATE
    return verdict.verdict not in DECIDED, doubted, scale, on_one_run(verdict), _strength(verdict)


def _unbounded(verdict: Verdict) -> bool:
    """Whether an end of an interval is infinite."""
    spans = verdict.measured.spans if verdict.measured else ()
    return not all(math.isfinite(end) for _, low, high in spans for end in (low, high))


def _strongest(verdict: Verdict) -> str:
    claim = verdict.claim
    assert verdict.measured is not None
    asked = "" if claim.rule == "order" else f" (printed: {', '.join(printed(claim)[:2])})"
    says = claim.says[:1].upper() + claim.says[1:].rstrip(".")
    beside = f"; exploratory: {verdict.exploratory.verdict}" if verdict.exploratory else ""
    return f"{says}: {ours(verdict.measured, claim)[0]}{asked}, **{said(verdict)}** ({verdict.rests_on}){beside}"


def contradictory(home: Path) -> list[Claim]:
    """The contradictions inside the papers of a home, in their order.

    They are the entries of that kind, and what has a doubt in an artifact that has none. A row is told with its lead.
    """
    found: list[Claim] = []
    for paper in papers_of(home):
        own = entries(paper)
        told = {entry.artifact for entry in own if entry.kind == CONTRADICTION}
        for entry in own:
            alone = entry.doubt and entry.kind in (CLAIM, TEST) and entry.artifact not in told
            if (entry.kind == CONTRADICTION or alone) and not entry.row_of:
                found.append(entry)
    return found


def contradictions(home: Path) -> str:
    """A table of the papers' contradictions, paper by paper; Markdown."""
    begun = lambda text: text[:1].upper() + text[1:]
    rows = [(e.paper, (e.where, begun(e.says), begun(e.doubt))) for e in contradictory(home)]
    return _by_paper("##", ["where", "the paper says", "what excludes it"], rows, "lll")


def every_id(verdicts: Sequence[Verdict]) -> str:
    """A table of all ids that a claim ever had, with their places and present or last verdicts; Markdown."""
    now = {claim: word for home in homes() for claim, word in read(home).merged.items()}
    now |= {verdict.claim.id: said(verdict) for verdict in verdicts}
    rows = []
    for name, place in places().items():
        target = "" if place.target == name else f"`{place.target}`"
        rows.append((f"`{name}`", place.becomes, target, now.get(name, "")))
    return markdown(["id", "became", "of, or held by", "verdict"], rows, "llll")
