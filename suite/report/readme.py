"""What README and docs say of verdicts and speed, generated from what is committed so that they say nothing else.

A block stands between two comments, ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``. ``sgd-suite refresh`` renews
all of them.

The results pages lead with a line per paper, the findings, the papers' contradictions and the place of each id. A
finding joins claims that one experiment decides. Its sentences *the paper says* and *what decides* stand in
``findings.toml`` beside the papers; *we have* is made of the verdicts on its claims.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from suite.claims import board as boards
from suite.claims.estimate import Estimate
from suite.claims.judge import CLAIM, CONTRADICTION, OURS, TEST, VERDICTS, Verdict
from suite.papers.catalogue import entries, homes, paper, papers_of, places, published
from suite.papers.measurement import judge_artifacts
from suite.papers.register import LATE, read
from suite.report import speed
from suite.report.answers import Answer, answers, beside_claims
from suite.report.numerals import basis, compared, few, markdown, ours
from suite.runs.archive import Runs
from suite.runs.environment import ROOT

FILE = "findings.toml"
SHOWN = 2  # numbers of one finding


class ReadmeError(ValueError):
    """A file that has no place for a block, or a finding that names no claim."""


@dataclass(frozen=True)
class Finding:
    """What a paper says, in our words, what would decide it, and the claims that say it (ids or globs)."""

    paper: str
    says: str
    decides: str
    claims: Sequence[str]

    def of(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """The verdicts on its claims. Raises ReadmeError for a name that means none of them."""
        mine = [v for v in verdicts if v.claim.paper == self.paper]
        moved, now = places(), {v.claim.id for v in mine}  # a row is on the board, as the claim that it is a row of
        names = [f"{self.paper}/{name}" for name in self.claims]
        names = [moved[name].target if name in moved and name not in now else name for name in names]
        if lost := [name for name in names if not any(fnmatchcase(v.claim.id, name) for v in mine)]:
            raise ReadmeError(f"finding {self.says!r} names {lost[0]!r}, which is no claim of the board")
        return [v for v in mine if any(fnmatchcase(v.claim.id, name) for name in names)]


def findings(home: Path) -> list[Finding]:
    """The findings of a home, in their order; none without a table."""
    path = home / FILE
    if not path.exists():
        return []
    return [Finding(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["finding"]]


def _tables_by_paper(
    heading: str, head: Sequence[str], rows: Iterable[tuple[str, Iterable[object]]], align: str
) -> str:
    """A table for each paper below its name."""
    parts = []
    for name, own in groupby(rows, itemgetter(0)):
        parts += [f"{heading} `{name}`", markdown(head, (cells for _, cells in own), align)]
    return "\n\n".join(parts)


def have(found: Sequence[Verdict]) -> str:
    """What the verdicts of a finding come to: its numbers, first the decided ones, then counts of the others.

    Questions of ours are counted last: a paper says none of their sentences.
    """
    asked = Counter(verdict.verdict for verdict in found if verdict.claim.kind == OURS)
    found = [verdict for verdict in found if verdict.claim.kind != OURS]
    told = sorted((v for v in found if v.measured), key=_strength)[:SHOWN]
    text = [number_of(verdict) for verdict in told]
    left = Counter(verdict.verdict for verdict in found) - Counter(verdict.verdict for verdict in told)
    text += [f"{left[word]} {word}" for word in VERDICTS if left[word]]
    beside = boards.counts(Counter(map(boards.proxy_says, found)), boards.PROXIES.values())
    text += [f"proxies: {beside}"] if beside else []
    return "; ".join([*text, *([f"questions of ours: {boards.counts(asked, VERDICTS)}"] if asked else [])])


def number_of(verdict: Verdict) -> str:
    """A claim's number beside the printed one, its verdict and scale, and what a later or corrected rule says."""
    assert verdict.measured is not None
    claim = verdict.claim
    every = ours(verdict.measured, claim)
    number = ", ".join([*every[:3], "…"][: len(every)])
    there = compared(claim)[:3]
    for unit in claim.displayed_unit.split(", "):  # which our number says
        there = [text.removesuffix(f" {unit}") for text in there]
    silent = claim.rule == "order" or (claim.rule == "holds" and not claim.printed)
    asked = "" if silent else f"{claim.basis} {', '.join(there).removeprefix('holds in ')}; "
    beside = f"; exploratory: {verdict.exploratory.verdict}" if verdict.exploratory else ""
    return f"`{claim.id.partition('/')[2]}` {number} ({asked}{boards.said(verdict)}, {verdict.rests_on}{beside})"


def _strength(verdict: Verdict) -> tuple[bool, int, bool, bool, bool, bool, int]:
    """Sorts what decides first, then by scale, what fails, what has an interval or a number, and repetitions."""
    ours = verdict.measured
    assert ours is not None
    scale = (*boards.EMPIRICAL, verdict.rests_on).index(verdict.rests_on)  # what is not empirical comes last
    settled = verdict.decides and verdict.verdict in boards.DECIDED
    passed = verdict.verdict != "not reproduced"  # a failure is not left to a count of the others
    untold = verdict.claim.rule == "holds"
    return not settled, scale, passed, not ours.spread, untold, bool(verdict.exploratory), -ours.n


def board_of_papers(verdicts: Sequence[Verdict]) -> str:
    """A line per paper: claims, how many are measured, decided and stand today, and what proxies say; Markdown."""
    rows = []
    for found in _by_paper(verdicts):
        counted = boards.board(found)
        beside = boards.counts(counted.beside, boards.PROXIES.values())
        rows.append((f"`{found[0].claim.paper}`", *_decided(counted), counted.standing, beside))
    return markdown(["paper", "claims", "measured", "decided", "stand today", "proxies"], rows, "lrrrrl")


def _most_telling(verdict: Verdict) -> tuple[object, ...]:
    """Sorts what an earlier rule decided and nothing puts in doubt; then by scale, and in more than one run.

    In doubt is what a later rule would decide otherwise, and a number of one run without an interval.
    """
    assert verdict.measured is not None
    scale = boards.EMPIRICAL.index(verdict.rests_on)
    bare = boards.on_one_run(verdict) and not verdict.measured.spread
    unbounded = not all(map(math.isfinite, (*verdict.measured.low, *verdict.measured.high)))
    doubted = bool(verdict.exploratory) or bare or unbounded or verdict.order == LATE
    return verdict.verdict not in boards.DECIDED, doubted, scale, boards.on_one_run(verdict), _strength(verdict)


def contradictions(home: Path) -> str:
    """A table of the contradictions inside the papers of a home, paper by paper; Markdown.

    They are the entries of that kind, and what has a doubt in an artifact that has none. A row is told with its lead.
    """
    begun = lambda text: text[:1].upper() + text[1:]
    rows = []
    for name in papers_of(home):
        own = entries(name)
        told = {entry.artifact for entry in own if entry.kind == CONTRADICTION}
        for entry in own:
            alone = entry.doubt and entry.kind in (CLAIM, TEST) and entry.artifact not in told
            if (entry.kind == CONTRADICTION or alone) and not entry.row_of:
                rows.append((name, (entry.where, begun(entry.says), begun(entry.doubt))))
    return _tables_by_paper("##", ["where", "the paper says", "what excludes it"], rows, "lll")


def every_id(verdicts: Sequence[Verdict]) -> str:
    """A table of all ids that a claim ever had, with their places and present or last verdicts; Markdown."""
    now = {claim: word for home in homes() for claim, word in read(home).merged.items()}
    now |= {verdict.claim.id: boards.said(verdict) for verdict in verdicts}
    rows = []
    for name, place in places().items():
        target = "" if place.target == name else f"`{place.target}`"
        rows.append((f"`{name}`", place.becomes, target, now.get(name, "")))
    return markdown(["id", "became", "of, or held by", "verdict"], rows, "llll")


OWN = ROOT / "paper_figures"  # the home of this project's papers
PER_PAPER = 3  # results told in words, for each paper
FIRST = 3  # of these, those that the README tells


def table(verdicts: Sequence[Verdict]) -> str:
    """The two boards, then the papers' shares in the first; Markdown."""
    shares = {
        found[0].claim.paper: Counter({row: tally.total() for row, tally in boards.board(found).empirical.items()})
        for found in _by_paper(verdicts)
    }
    counted = boards.board(verdicts)
    later = [f"{row}{text}" for row in counted.empirical if (text := boards.apart(counted, row))]
    behind = ", ".join(f"{row} {runs}" for row, runs in counted.runs.items() if runs)
    told = [f"{boards.rows_told(counted).capitalize()}."] if counted.rows else []
    told += [f"Distinct runs behind them: {behind}."] if behind else []
    told += _beside(counted, named=True)
    if counted.uncommitted:
        told.append(f"{counted.uncommitted} of the decided rest on a run or more of a tree with uncommitted changes.")
    if later:
        told.append(f"Rules fixed or changed after their evidence: {'; '.join(later)}.")
        told.append("What is late or undated decides nothing.")
    parts = (
        headline(counted),
        _table("Empirical claims, by what they rest on", VERDICTS, counted.empirical),
        " ".join(told),
        _table("Properties and statements", tuple(boards.WORDS.values()), counted.properties),
        _table("Empirical claims of each paper", (*boards.EMPIRICAL, boards.NOTHING), shares),
    )
    return "\n\n".join(filter(None, parts))


def _beside(counted: boards.Board, *, named: bool) -> list[str]:
    """Sentences on claims that are corrected together, and on proxies."""
    lines = boards.corrected(counted, named=named), boards.proxies(counted)
    return [f"{line[0].upper()}{line[1:]}." for line in lines if line]


def first_table(verdicts: Sequence[Verdict]) -> str:
    """What is decided, and a line per paper; Markdown."""
    counted = boards.board(verdicts)
    told = _beside(counted, named=False)
    if counted.ours:
        told.append(f"Questions of ours, counted apart: {counted.ours.total()}.")
    tally = sum(counted.properties.values(), Counter[str]())
    if words := ", ".join(f"{word} {tally[word]}" for word in boards.WORDS.values() if tally[word]):
        told.append(f"Properties and statements, counted apart: {words}.")
    return "\n\n".join(filter(None, (headline(counted), board_of_papers(verdicts), " ".join(told))))


def headline(counted: boards.Board) -> str:
    """How many empirical claims there are, are measured, decided at their own size, and by a rule that came first."""
    claims, measured, decided = _decided(counted)
    if not claims:
        return "There are no empirical claims."
    excused = f" {counted.excused} that fail by rule are undetermined, since a setting is not printed."
    first = sum(tally["registered"] for tally in counted.order.values())
    outcomes = boards.counts(counted.decides, boards.DECIDED)
    return (
        f"Of {claims} empirical claims {measured} are measured{_once(counted.single)}, and {decided} of these are "
        f"decided at the size that the claim speaks of{_once(counted.decided_once)}: {outcomes}. "
        f"Today's rule, corrected, leaves {counted.standing} of them standing. For {first} of the measured, rule and "
        f"runs stand as they were registered before the first run began.{excused if counted.excused else ''}"
    )


def _decided(counted: boards.Board) -> tuple[int, int, int]:
    """Empirical claims, how many of them are measured, and how many decided at their own size."""
    claims = sum(map(Counter.total, counted.empirical.values()))
    decided = counted.decides.total() - counted.decides["inconclusive"] - counted.decides["undetermined"]
    return claims, claims - counted.empirical[boards.NOTHING].total(), decided


def _once(count: int) -> str:
    return f" ({count} on one run)" if count else ""


def _table(title: str, columns: Sequence[str], rows: Mapping[str, Counter[str]]) -> str:
    """Counts by row and column, and their sums; without the columns that count nothing."""
    total = sum(rows.values(), Counter[str]())
    columns = [column for column in columns if total[column]]
    lines = [*rows.items(), ("all", total)]
    cells = [[name, *(tally[column] for column in columns), tally.total()] for name, tally in lines]
    return markdown([title, *columns, "claims"], cells, "l" + "r" * (len(columns) + 1))


def results(verdicts: Sequence[Verdict]) -> str:
    """The most telling empirical results of each paper; Markdown."""
    return "\n".join(_sentence(v) for found in _by_paper(verdicts) for v in telling(found))


def answered(
    found: Iterable[Answer], verdicts: Sequence[Verdict], images: str, others: Mapping[str, Estimate], *, whole: bool
) -> str:
    """Questions, their answers and figures; Markdown. ``images`` is where the figures' PNG files lie.

    ``whole``: with what limits each answer.
    """
    parts = []
    for answer in found:
        told = answer.told(verdicts, others)
        picture = f"{images}/{answer.figure.replace('/', '-')}.png"
        parts.append(f"**{answer.question}** {told.says}")
        if told.table:
            head, *rows = told.table
            parts.append(markdown(head, rows, "l" + "r" * (len(head) - 1)))
        parts.append(f"![{answer.alt}]({picture})")
        if whole and told.more:
            parts.append("\n".join(f"- {point}" for point in told.more))
    return "\n\n".join(parts)


def first_told(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The most telling result of each paper, of these the most telling few."""
    return telling([v for found in _by_paper(verdicts) for v in telling(found, 1)], FIRST)


def _by_paper(verdicts: Iterable[Verdict]) -> list[list[Verdict]]:
    return [list(own) for _, own in groupby(verdicts, lambda verdict: verdict.claim.paper)]


def telling(found: Iterable[Verdict], most: int = PER_PAPER) -> list[Verdict]:
    """A paper's decided empirical results worth a sentence: first failures that taught something, then by weight.

    Questions of ours are none of a paper's results.
    """
    claims = [v for v in found if v.claim.kind != OURS]
    decided = [v for v in claims if v.rests_on in boards.EMPIRICAL and v.verdict in boards.DECIDED]
    return sorted(decided, key=lambda v: (not v.claim.finding, *_most_telling(v)))[:most]


def _sentence(verdict: Verdict) -> str:
    claim, measured = verdict.claim, verdict.measured
    assert measured is not None
    repetitions = f", n = {measured.n}" if measured.n > 1 else ""
    rests = f"{verdict.rests_on}: {verdict.because}" if verdict.because else verdict.rests_on
    text = (
        f"- **{verdict.verdict}** (`{claim.artifact}`): {claim.says.rstrip('.')}. "
        f"{basis(claim).capitalize()}: {few(compared(claim))}; ours: {few(ours(measured, claim))} "
        f"({rests}{repetitions})."
    )
    return f"{text} {verdict.why[:1].upper()}{verdict.why[1:].rstrip('.')}." if claim.finding else text


def rewritten(text: str, name: str, block: str) -> str:
    """A file's text with the block of a name replaced. Raises ReadmeError without its markers."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ReadmeError(f"it must hold {begin} once and, after it, {end} once: generated text goes between them")
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{block}\n{end}{rest.partition(end)[2]}"


def judged_of(papers: Iterable[str], source: Runs) -> list[Verdict]:
    """Every claim of these papers on the evidence of ``source``, each at the largest profile that decides it."""
    found = []
    for which in map(paper, papers):
        found += judge_artifacts(which, {claim.artifact for claim in published(which.name)}, None, source)
    return found


def blocks(verdicts: Sequence[Verdict], source: Runs) -> dict[str, dict[str, str]]:
    """File below the root -> name of a block -> its text; the verdicts were judged on the evidence of ``source``."""
    told = answers([OWN])
    others = beside_claims(told, source)
    found = [(f.paper, (i, f.says, have(f.of(verdicts)), f.decides)) for i, f in enumerate(findings(OWN), 1)]
    head = ["", "the paper says", "we have", "what decides"]
    measured = "\n\n".join(map(speed.table, speed.committed()))
    return {
        "README.md": {
            "answers": answered(told, verdicts, "docs/images", others, whole=False),
            "verdicts": first_table(verdicts),
        },
        "docs/results.md": {
            "verdicts": table(verdicts),
            "answers": answered(told, verdicts, "images", others, whole=True),
            "findings": _tables_by_paper("###", head, found, "rlll"),
        },
        "docs/contradictions.md": {"contradictions": contradictions(OWN)},
        "docs/claims.md": {"places": every_id(verdicts)},
        "docs/speed.md": {"speed": measured or "No machine has been measured yet."},
    }
