"""The site: the artifacts as the index and the papers' pages list them, and how their pages are made.

An artifact has three files: its page, its figure as SVG, its numbers as CSV.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suite.claims.board import NOTHING, WORDS, board, word
from suite.claims.judge import NEEDS, PROFILES, VERDICTS, Verdict
from suite.clock import counted
from suite.papers.artifact import Artifact, Missing, Paper
from suite.papers.catalogue import published, read_once, select
from suite.papers.measurement import besides, judge_artifacts, measurements
from suite.report.answers import Answer, AnswerError, answers, beside_claims
from suite.report.curves import curves
from suite.report.data import encoded, values
from suite.report.drawing import DrawingError, drawing, image, naming, table_of
from suite.report.readme import first_told
from suite.report.site.render import ASSETS, HERE, INDEX, render
from suite.report.site.single import joined
from suite.report.verdict_details import departure_ledgers, function_of, reasons, runs_and_environments, runs_behind
from suite.runs.archive import Runs
from suite.runs.environment import ROOT, revision
from suite.runs.run import StoreError, UnusableRun, write

ALL_WORDS = tuple(dict.fromkeys((*VERDICTS, *WORDS.values())))
MARK = b"sgd-suite"  # stands in every page

Tell = Callable[[str], None]  # is told of each paper


@dataclass
class Row:
    """An artifact as the index and its paper's page list it."""

    artifact: Artifact
    verdicts: list[Verdict] = field(default_factory=list)
    files: Mapping[str, bytes] = field(default_factory=dict)  # of its page

    @property
    def picture(self) -> str:
        """The path of its figure; nothing where it has none."""
        path = f"{self.artifact.id}.svg"
        return path if path in self.files else ""

    @property
    def tally(self) -> Counter[str]:
        """Claims by what is said of them, in the order of the boards."""
        return Counter(sorted(map(word, self.verdicts), key=ALL_WORDS.index))

    @property
    def triples(self) -> str:
        """Each claim's verdict, grade and need, for the filters."""
        claims = (f"{word(v)}|{v.rests_on or NOTHING}|{v.claim.needs}" for v in self.verdicts)
        return ";".join(dict.fromkeys(claims))


@dataclass
class Section:
    """One paper with its artifacts."""

    paper: Paper
    artifacts: list[Row]

    @property
    def verdicts(self) -> list[Verdict]:
        return [verdict for row in self.artifacts for verdict in row.verdicts]


@dataclass(frozen=True)
class Site:
    """The files of a site by their paths in it, the index first, and how many artifacts they show.

    ``faults`` names the artifacts that a programming error kept from being drawn, with the error.
    """

    files: dict[str, bytes]
    artifacts: int
    faults: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{counted(self.artifacts, 'artifact')}, {counted(len(self.files), 'file')}"


def make_site(source: Runs, tell: Tell, selectors: Sequence[str]) -> Site:
    """The site of the selected artifacts. The same runs and the same code give the same bytes.

    Raises SelectorError.
    """
    source, sections = read_once(source), chosen(selectors)
    made, faults = dict[str, bytes](), list[str]()
    for section in sections:
        rows = section.artifacts
        for before, row, after in zip([None, *rows], rows, [*rows[1:], None], strict=False):
            row.verdicts = judge_artifacts(section.paper, [row.artifact.id], None, source)
            row.files, fault = files(section.paper, row, source, before, after)
            made |= row.files
            faults += [fault] if fault else []
        tell(f"{section.paper.name}: {counted(len(rows), 'artifact')}")
    count = sum(len(section.artifacts) for section in sections)
    return Site(_shared(sections, source) | made, count, tuple(faults))


def write_site(
    source: Runs, out: Path, tell: Tell = lambda line: None, selectors: Sequence[str] = (), *, single: bool = False
) -> tuple[Path, Site]:
    """Write ``make_site`` into ``out``; its index and the site. Raises StoreError where it cannot be written.

    With ``single`` all pages are in one file, ``report.html``. Otherwise pages of an earlier report that this one
    does not have are removed, as its index would not lead to them.
    """
    index = Path(out) / ("report.html" if single else INDEX)
    check_place(index)
    site = make_site(source, tell, selectors)
    if single:
        return write(index, joined(site.files).encode()), site
    for path, data in site.files.items():
        write(Path(out) / path, data)
    there = (*Path(out).glob("*.html"), *Path(out).glob("*/*.html"))
    others = [page for page in there if str(page.relative_to(out)) not in site.files]
    # Neither somebody else's page nor a report of one file.
    earlier = [page for page in others if MARK in (text := page.read_bytes()) and b'site.css">' in text]
    for page in earlier:
        for ending in (".html", ".svg", ".csv"):
            page.with_suffix(ending).unlink(missing_ok=True)
    if earlier:
        tell(f"{counted(len(earlier), 'page')} of an earlier report removed")
    return index, site


def check_place(page: Path) -> None:
    """Raise StoreError where a page of somebody else stands in the place of one of a report."""
    if page.exists() and MARK not in page.read_bytes():
        raise StoreError(
            f"{page} is there and was not written by `report`; move it, or name another folder with --out"
        )


def chosen(selectors: Sequence[str]) -> list[Section]:
    """The selected artifacts by paper; of whole papers also what nothing measures yet, which has a name and claims.

    Raises SelectorError.
    """
    sections = list[Section]()
    for which, artifacts in select(selectors):
        found = {artifact.id: artifact for artifact in artifacts}
        for claim in () if selectors else published(which.name):
            found.setdefault(claim.artifact, Artifact(claim.artifact, claim.artifact.partition("/")[2]))
        sections.append(Section(which, list(map(Row, found.values()))))
    return sections


def _shared(sections: list[Section], source: Runs) -> dict[str, bytes]:
    """The index, the papers' pages, the glossary, style and script."""
    found = [verdict for section in sections for verdict in section.verdicts]
    index = render(
        "index.html.j2",
        sections=sections,
        answers=list(_answers(sections, found, source)),
        told=first_told(found),
        counts=board(found),
        needed=list(_needed(found)),
        all_words=ALL_WORDS,
        revision=revision(),
    )
    made = {INDEX: index, **{name: (HERE / name).read_bytes() for name in ASSETS}}
    made["about.html"] = render("about.html.j2", ledgers=departure_ledgers(ROOT / "reference_impls"))
    for section in sections:
        made[f"{section.paper.name}.html"] = render("paper.html.j2", section=section)
    return made


def _answers(sections: list[Section], verdicts: list[Verdict], source: Runs) -> Iterator[tuple[Answer, Row]]:
    """Answers with the rows of their figures; without those that were written for other verdicts than these."""
    rows = {row.artifact.id: row for section in sections for row in section.artifacts}
    found = [answer for answer in answers() if answer.figure in rows]
    others = beside_claims(found, source)
    for answer in found:
        with contextlib.suppress(AnswerError):
            yield answer.told(verdicts, others), rows[answer.figure]


def _needed(verdicts: list[Verdict]) -> Iterator[tuple[str, int, int]]:
    """Need, empirical claims that are measured, and others; those that the board counts."""
    for need in NEEDS:
        tallied = board(verdict for verdict in verdicts if verdict.claim.needs == need).empirical
        if total := sum(map(Counter.total, tallied.values())):
            yield need, total - tallied[NOTHING].total(), tallied[NOTHING].total()


def files(
    paper: Paper, row: Row, source: Runs, before: Row | None, after: Row | None
) -> tuple[dict[str, bytes], str]:
    """Path in the site -> bytes, of an artifact between two others of the paper.

    The second value is the programming error that kept the artifact from being drawn, or nothing.
    """
    made: dict[str, bytes] = {}
    artifact, found, name = row.artifact, row.verdicts, row.artifact.id
    measured = artifact in paper.artifacts
    drawn, undrawn, fault = None, "" if measured else "No experiment measures this artifact yet.", ""
    try:
        drawn = drawing(artifact, source)
        if drawn:
            made[f"{name}.svg"] = image(drawn, "svg")
        with naming(name):
            table = table_of(artifact, source, drawn, lambda: found)
    except (Missing, UnusableRun, DrawingError) as error:
        kinds = {Missing: "Not run", DrawingError: "Not drawn"}
        undrawn = f"{kinds.get(type(error), 'Not drawn, stored evidence cannot be used')}: {error}."
        fault = str(error) if isinstance(error, DrawingError) else ""
        drawn, made, table = None, {}, values(found)
    if table is not None:
        made[f"{name}.csv"] = encoded(table, "csv")
    used = {v.profile for v in found if v.profile} | ({drawn.profile} - {""} if drawn else set())
    # The page rests on the runs that verdicts name, and on the stored ones of the profiles in use.
    named = {run_id for v in found for m in (v.measured, v.proxy) if m for run_id in m.runs}
    planned = artifact.ids(*used) & source.ids() if used else set()
    environments, runs = runs_and_environments(source, sorted(named | planned))
    measures = [each.value for each in artifact.quantities.values()]
    page = render(
        "artifact.html.j2",
        depth=name.count("/"),
        paper=paper,
        artifact=artifact,
        name=name,
        claims=found,
        drawn=drawn,
        curves=curves(drawn.figure) if drawn else "",
        undrawn=undrawn,
        command=command(artifact, drawn.profile if drawn else "", used) if measured else "",
        besides=besides(name, measurements(artifact, source, claimed=False)),
        reasons=reasons,
        runs_behind=lambda verdict: runs_behind(verdict, artifact, source),
        table=f"{name}.csv" in made,
        environments=environments,
        runs=runs,
        module=next((function_of(each).__module__ for each in (artifact.draw, *measures) if each), ""),
        before=before,
        after=after,
    )
    return {f"{name}.html": page} | made, fault


def command(artifact: Artifact, profile: str, used: set[str]) -> str:
    """What a reader types to remake an artifact: at a profile, or without one at the largest that is in use.

    Where none is, it is the smallest at which the artifact has runs.
    """
    able = [name for name in PROFILES if artifact.runs(name)]
    profile = profile or next((name for name in reversed(able) if name in used), able[0] if able else "")
    last = f"sgd-suite {'figures' if artifact.draw else 'check'} {artifact.id}"
    return f"sgd-suite run {artifact.id} --profile {profile} && {last}" if profile else last
