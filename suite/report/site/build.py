"""The site written: artifact by artifact, each only when what its page follows from has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suite.claims.board import GRADES, NOTHING, WORDS, board, word
from suite.claims.judge import NEEDS, VERDICTS, Verdict
from suite.papers import remembered
from suite.papers.artifact import Artifact, Paper
from suite.papers.published import published
from suite.papers.registry import PAPERS, paper
from suite.papers.verdicts import verdicts
from suite.report.drawing import standalone
from suite.report.page import Section
from suite.report.provenance import departures
from suite.report.readme import first_told
from suite.report.site.changed import key_of, read_once, seals, state
from suite.report.site.exhibit import files, module_of, text_of
from suite.report.site.render import ASSETS, HERE, render
from suite.report.site.stamp import Folder, digest_of
from suite.report.speed import COLUMNS
from suite.report.speed_figures import measured_speed
from suite.runs.archive import Runs
from suite.runs.environment import ROOT, revision

SHARED, SPEED = "the site", "speed"  # groups of files that belong to no artifact
ALL_WORDS = tuple(dict.fromkeys((*VERDICTS, *WORDS.values())))


@dataclass
class Row:
    """An artifact as the index and its paper's page list it."""

    id: str
    title: str
    artifact: Artifact | None
    verdicts: list[Verdict] = field(default_factory=list)
    thumbnail: str = ""
    figure: str = ""

    @property
    def tally(self) -> Counter[str]:
        """Claims by what is said of them, in the order of the boards."""
        counted = Counter(map(word, self.verdicts))
        return Counter({name: counted[name] for name in ALL_WORDS if counted[name]})

    @property
    def needs(self) -> list[str]:
        needed = {verdict.claim.needs for verdict in self.verdicts}
        return [need for need in NEEDS if need in needed]

    @property
    def grades(self) -> list[str]:
        found = {verdict.rests_on for verdict in self.verdicts}
        return [grade for grade in GRADES if grade in found]

    @property
    def triples(self) -> str:
        """Each claim's verdict, grade and need, for the filters."""
        claims = (f"{word(v)}|{v.rests_on or NOTHING}|{v.claim.needs}" for v in self.verdicts)
        return ";".join(dict.fromkeys(claims))

    @property
    def words(self) -> str:
        """What the claims say, for the search."""
        return " ".join(verdict.claim.says for verdict in self.verdicts)


@dataclass(frozen=True)
class Built:
    """The index, how many artifacts there are, how many of them were made anew; as text, a sentence."""

    index: Path
    artifacts: int
    made: int
    written: int  # files

    def __str__(self) -> str:
        if not self.written:
            return f"nothing has changed: the pages of {self.artifacts} artifacts stay as they are"
        return f"{self.made} of {self.artifacts} artifacts made anew, {self.written} files written"


def write_site(source: Runs, out: Path, tell: Callable[[str], None] = lambda line: None) -> Built:
    """Write the site into ``out``; what is there and would come out the same stays as it is.

    ``tell`` is told of each paper. The same runs and the same code give the same bytes. Raises StoreError when
    ``out`` cannot be written.
    """
    source, folder = read_once(source), Folder(out)
    own, about = seals(source), revision()
    whole = digest_of(repr([state(), sorted(own.items()), about]).encode())
    index = Path(out) / "index.html"
    if folder.complete(whole):
        return Built(index, len(folder.groups) - len({SHARED, SPEED} & set(folder.groups)), 0, 0)
    sections: list[Section[Row]] = []
    made = 0
    try:
        for name in PAPERS:
            rows = _rows(paper(name))
            anew = sum(_write_artifact(paper(name), rows, place, source, own, folder) for place in range(len(rows)))
            sections.append(Section(paper(name), rows))
            made += anew
            tell(f"{name}: {len(rows)} artifacts, {anew} made anew")
    finally:
        folder.save()
    if not folder.holds(SPEED, state()):
        folder.put(SPEED, state(), _speed())
    shared = _shared(sections, about, bool(folder.groups[SPEED].files))
    folder.put(SHARED, whole, shared)
    rows = [row for section in sections for row in section.artifacts]
    folder.close(whole, [SHARED, SPEED, *(row.id for row in rows)])
    return Built(index, len(rows), made, len(folder.written))


def _rows(which: Paper) -> list[Row]:
    """The paper's artifacts, then those that nothing measures yet."""
    rows = {artifact.id: Row(artifact.id, artifact.title, artifact) for artifact in which.artifacts}
    for claim in published(which.name):
        rows.setdefault(claim.artifact, Row(claim.artifact, claim.artifact.partition("/")[2], None))
    return list(rows.values())


def _write_artifact(
    which: Paper, rows: list[Row], place: int, source: Runs, own: dict[str, str], folder: Folder
) -> bool:
    """Judge an artifact and, unless its page would come out the same, write it anew: whether that was so."""
    row = rows[place]
    key = key_of(row.artifact, own)
    anew = not folder.holds(row.id, key)
    measured: dict[tuple[str, str], Any] | None = {} if anew else None
    if row.artifact is None:
        row.verdicts = verdicts(which, source, artifacts=[row.id])
    else:
        row.verdicts = remembered.judge_artifact(which, row.id, None, source, measured=measured)
    if anew:
        around = {
            "before": rows[place - 1] if place else None,
            "after": rows[place + 1] if place + 1 < len(rows) else None,
        }
        folder.put(row.id, key, files(which, row.id, row.artifact, row.verdicts, source, measured or {}, around))
    there = folder.groups[row.id].files
    row.thumbnail, row.figure = (path if path in there else "" for path in (f"{row.id}.thumb.png", f"{row.id}.svg"))
    return anew


def _speed() -> dict[str, bytes]:
    """The page of measured speed with its drawings; nothing where none is committed."""
    found = measured_speed()
    if not found:
        return {}
    drawings = {
        f"{document.id}-{number}.svg": standalone(figure.svg)
        for document in found
        for number, figure in enumerate(document.figures)
    }
    return {"speed.html": render("speed.html.j2", speed=found, columns=COLUMNS)} | drawings


def _shared(sections: list[Section[Row]], about: dict[str, Any], speed: bool) -> dict[str, bytes]:
    """The index, the papers' pages, the glossary, the sources, style and script."""
    judged = [verdict for section in sections for verdict in section.verdicts]
    made = {name: (HERE / name).read_bytes() for name in ASSETS}
    made["index.html"] = render(
        "index.html.j2",
        sections=sections,
        told=first_told(judged),
        counts=board(judged),
        needed=list(_needed(judged)),
        all_words=ALL_WORDS,
        speed=speed,
        revision=about,
    )
    made["about.html"] = render("about.html.j2", ledgers=departures(ROOT / "reference_impls"))
    for section in sections:
        made[f"{section.paper.name}.html"] = render("paper.html.j2", section=section)
    written: dict[str, list[Row]] = {}
    for section in sections:
        for row in section.artifacts:
            written.setdefault(module_of(row.artifact), []).append(row)
    for module, rows in written.items():
        if module:
            page = render("source.html.j2", depth=1, module=module, rows=rows, text=text_of(module))
            made[f"source/{module}.html"] = page
    return made


def _needed(judged: list[Verdict]) -> Iterator[tuple[str, int, int]]:
    """Need, claims measured, claims not run."""
    for need in NEEDS:
        found = [verdict for verdict in judged if verdict.claim.needs == need]
        if found:
            open_ = sum(verdict.verdict == "not run" for verdict in found)
            yield need, len(found) - open_, open_
