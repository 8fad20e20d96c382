"""What README and docs say of verdicts and speed, generated from what is committed so that they say nothing else.

A block stands between two comments, ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``. ``sgd-suite refresh`` renews
all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from suite.claims.board import EMPIRICAL, NOTHING, WORDS, Board, apart, board, corrected, rows_told, stand_ins
from suite.claims.estimate import Estimate
from suite.claims.judge import VERDICTS, Verdict
from suite.papers.catalogue import paper, published
from suite.papers.measurement import judge_artifacts
from suite.report import speed
from suite.report.answers import Answer, answers, beside_claims
from suite.report.findings import board_of_papers, contradictions, every_id, findings, findings_told
from suite.report.numerals import few, markdown, ours, printed
from suite.runs.archive import Runs
from suite.runs.environment import ROOT

OWN = ROOT / "paper_figures"  # the home of this project's papers
PER_PAPER = 3  # results told in words, for each paper
FIRST = 3  # of these, those that the README tells


UNDECIDED = ("not run", "inconclusive", "undetermined")


class ReadmeError(ValueError):
    """A file that has no place for a block."""


def table(verdicts: Sequence[Verdict]) -> str:
    """The two boards, then the papers' shares in the first; Markdown."""
    shares = {
        found[0].claim.paper: Counter({row: tally.total() for row, tally in board(found).empirical.items()})
        for found in _by_paper(verdicts)
    }
    properties = _table("Properties and statements", tuple(WORDS.values()), board(verdicts).properties)
    by_paper = _table("Empirical claims of each paper", (*EMPIRICAL, NOTHING), shares)
    return "\n\n".join((_first(verdicts), properties, by_paper))


def first_table(verdicts: Sequence[Verdict]) -> str:
    """What is decided, and a line per paper; Markdown."""
    counted = board(verdicts)
    told = [f"{line[0].upper()}{line[1:]}." for line in (corrected(counted), stand_ins(counted)) if line]
    if counted.ours:
        told.append(f"Questions of ours, counted apart: {counted.ours.total()}.")
    tally = sum(counted.properties.values(), Counter[str]())
    if words := ", ".join(f"{tally[word]} {word}" for word in WORDS.values() if tally[word]):
        told.append(f"Properties and statements: {words}.")
    return "\n\n".join(filter(None, (headline(counted), board_of_papers(verdicts), " ".join(told))))


def headline(counted: Board) -> str:
    """How many empirical claims there are, how many are measured, and how many decided at their own size."""
    claims = sum(map(Counter.total, counted.empirical.values()))
    measured = claims - counted.empirical[NOTHING].total()
    decided = counted.decides.total() - counted.decides["inconclusive"] - counted.decides["undetermined"]
    once = f" ({counted.single} on one run)" if counted.single else ""
    return (
        f"Of {claims} empirical claims {measured} are measured{once}, and {decided} of these are decided at the size "
        "that the claim speaks of."
    )


def _first(verdicts: Sequence[Verdict]) -> str:
    counted = board(verdicts)
    words = headline(counted)
    made = _table("Empirical claims, by what they rest on", VERDICTS, counted.empirical)
    later = [f"{row}{text}" for row in counted.empirical if (text := apart(counted, row))]
    behind = ", ".join(f"{row} {runs}" for row, runs in counted.runs.items() if runs)
    told = [f"{rows_told(counted).capitalize()}."] if counted.rows else []
    told += [f"Distinct runs behind them: {behind}."] if behind else []
    told += [f"{line[0].upper()}{line[1:]}." for line in (corrected(counted), stand_ins(counted)) if line]
    if later:
        told.append(f"Rules fixed or changed after their evidence: {'; '.join(later)}.")
    return "\n\n".join([words, made, " ".join(told)] if told else [words, made])


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
    found: Iterable[Answer], verdicts: Sequence[Verdict], images: str, others: Mapping[str, Estimate]
) -> str:
    """Questions, their answers and figures; Markdown. ``images`` is where the figures' PNG files lie."""
    parts = []
    for answer in found:
        told = answer.told(verdicts, others)
        picture = f"{images}/{answer.figure.replace('/', '-')}.png"
        parts.append(f"**{answer.question}** {told.text}")
        if told.table:
            head, *rows = told.table
            parts.append(markdown(head, rows, "l" + "r" * (len(head) - 1)))
        parts.append(f"![{answer.alt}]({picture})")
    return "\n\n".join(parts)


def first_told(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The most telling result of each paper, of these the most telling few."""
    return telling([v for found in _by_paper(verdicts) for v in telling(found, 1)], FIRST)


def _by_paper(verdicts: Iterable[Verdict]) -> list[list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.claim.paper, []).append(verdict)
    return list(found.values())


def telling(found: Iterable[Verdict], most: int = PER_PAPER) -> list[Verdict]:
    """A paper's empirical results worth a sentence: what rests on the best evidence first, of those what failed and
    taught something, then the largest number of repetitions; in the paper's order if equal."""
    decided = [v for v in found if v.rests_on in EMPIRICAL and v.verdict not in UNDECIDED]
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
        f"- **{verdict.verdict}** (`{claim.artifact}`): {claim.says.rstrip('.')}. Printed: {few(printed(claim))}; "
        f"ours: {few(ours(measured, claim))} ({rests}{repetitions})."
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
    return {
        "README.md": {"answers": answered(told, verdicts, "docs/images", others), "verdicts": first_table(verdicts)},
        "docs/results.md": {
            "verdicts": table(verdicts),
            "answers": answered(told, verdicts, "images", others),
            "findings": findings_told(findings(OWN), verdicts),
        },
        "docs/contradictions.md": {"contradictions": contradictions(OWN)},
        "docs/claims.md": {"places": every_id(verdicts)},
        "docs/speed.md": {"speed": speed.tables(speed.committed())},
    }


def blocks_elsewhere(verdicts: Sequence[Verdict]) -> dict[str, dict[str, str]]:
    """The same of a project with papers of its own: what its README says of its claims."""
    return {"README.md": {"verdicts": first_table(verdicts), "results": results(verdicts)}}
