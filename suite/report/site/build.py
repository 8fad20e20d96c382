"""The site written: artifact by artifact, each only when what its page follows from has changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite.claims.board import board
from suite.claims.judge import NEEDS, Verdict
from suite.papers.catalogue import select
from suite.report.answers import Answer, AnswerError, Told, answers, beside_claims
from suite.report.drawing import image
from suite.report.provenance import departures
from suite.report.readme import first_told
from suite.report.site.exhibit import module_of, text_of
from suite.report.site.page_cache import key_of, read_once, seals, state
from suite.report.site.render import ASSETS, HERE, render
from suite.report.site.rows import ALL_WORDS, PagePlace, Reopen, Row, Section, judged, makers, rows_of
from suite.report.site.stamp import Folder, digest_of
from suite.report.speed import COLUMNS
from suite.report.speed_figures import measured_speed
from suite.runs.archive import Runs
from suite.runs.environment import ROOT, revision

SHARED, SPEED = "the site", "speed"  # groups of files that belong to no artifact


@dataclass(frozen=True)
class Built:
    """The index, how many artifacts there are, how many of them were made anew; as text, a sentence.

    ``faults`` names the artifacts that a programming error kept from being drawn, with the error.
    """

    index: Path
    artifacts: int
    made: int
    written: int  # files
    faults: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.written:
            return f"nothing has changed: the pages of {self.artifacts} artifacts stay as they are"
        return f"{self.made} of {self.artifacts} artifacts made anew, {self.written} files written"


def write_site(
    source: Runs,
    out: Path,
    tell: Callable[[str], None] = lambda line: None,
    reopen: Reopen | None = None,
    selectors: Sequence[str] = (),
) -> Built:
    """Write the site of the selected artifacts into ``out``; what is there and would come out the same stays.

    ``tell`` is told how many artifacts are to be made, then of each paper. With ``reopen``, which opens the same
    source in another process, many artifacts are made in several. The same runs and the same code give the same
    bytes. Raises StoreError when ``out`` cannot be written.
    """
    source, folder = read_once(source), Folder(out)
    own, about = seals(source), revision()
    whole = digest_of(repr([state(), sorted(own.items()), about, *selectors]).encode())
    index = Path(out) / "index.html"
    if folder.complete(whole):
        return Built(index, len(folder.groups) - len({SHARED, SPEED} & set(folder.groups)), 0, 0)
    sections, places = chosen(selectors)
    # A page names its neighbours, so that one among few is another than the same among all.
    few = f" among {digest_of(repr(sorted(places)).encode())}" if selectors else ""
    keys = {row.id: key_of(row.artifact, own) + few for section in sections for row in section.artifacts}
    todo = [
        places[row.id] for section in sections for row in section.artifacts if not folder.holds(row.id, keys[row.id])
    ]
    tell(f"{len(todo)} of {len(keys)} artifacts are to be made")
    faults = list[str]()
    try:
        with makers(source, todo, reopen) as made:
            if not folder.holds(SPEED, state()):  # while others make the artifacts
                folder.put(SPEED, state(), _speed())
            for section in sections:
                anew = 0
                for row in section.artifacts:
                    if places[row.id] in todo:
                        row.verdicts, files, fault = next(made)
                        folder.put(row.id, "" if fault else keys[row.id], files)  # without a key: made again
                        faults += [fault] if fault else []
                        anew += 1
                    else:
                        row.verdicts = judged(section.paper, row, source)
                    row.files = folder.groups[row.id].files
                tell(f"{section.paper.name}: {len(section.artifacts)} artifacts, {anew} made anew")
    finally:
        folder.save()
    folder.put(SHARED, whole, _shared(sections, about, bool(folder.groups[SPEED].files), source))
    folder.close("" if faults else whole, [SHARED, SPEED, *keys])
    return Built(index, len(keys), len(todo), len(folder.written), tuple(faults))


def chosen(selectors: Sequence[str]) -> tuple[list[Section], dict[str, PagePlace]]:
    """The selected artifacts by paper, and by id where each stands. Raises SelectorError."""
    sections, places = list[Section](), dict[str, PagePlace]()
    for which, artifacts in select(selectors):
        rows = rows_of(which)
        wanted = {artifact.id for artifact in artifacts} if selectors else {row.id for row in rows}
        among = tuple(wanted) if selectors else ()
        sections.append(Section(which, [row for row in rows if row.id in wanted]))
        places |= {row.id: PagePlace(row.id, among) for row in rows if row.id in wanted}
    return sections, places


def _speed() -> dict[str, bytes]:
    """The page of measured speed with its drawings; nothing where none is committed."""
    found = measured_speed()
    if not found:
        return {}
    drawings = {
        f"{document['id']}-{number}.svg": image(drawn, "svg")
        for document in found
        for number, drawn in enumerate(document["figures"])
    }
    return {"speed.html": render("speed.html.j2", speed=found, columns=COLUMNS)} | drawings


def _shared(sections: list[Section], about: dict[str, Any], speed: bool, source: Runs) -> dict[str, bytes]:
    """The index, the papers' pages, the glossary, the sources, style and script."""
    found = [verdict for section in sections for verdict in section.verdicts]
    made = {name: (HERE / name).read_bytes() for name in ASSETS}
    made["index.html"] = render(
        "index.html.j2",
        sections=sections,
        answers=list(_answers(sections, found, source)),
        told=first_told(found),
        counts=board(found),
        needed=list(_needed(found)),
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


def _answers(sections: list[Section], verdicts: list[Verdict], source: Runs) -> Iterator[tuple[Answer, Row, Told]]:
    """Answers with the rows of their figures; without those that were written for other verdicts than these."""
    rows = {row.id: row for section in sections for row in section.artifacts}
    found = [answer for answer in answers() if answer.figure in rows]
    others = beside_claims(found, source)
    for answer in found:
        with contextlib.suppress(AnswerError):
            yield answer, rows[answer.figure], answer.told(verdicts, others)


def _needed(verdicts: list[Verdict]) -> Iterator[tuple[str, int, int]]:
    """Need, claims measured, claims not run."""
    for need in NEEDS:
        found = [verdict for verdict in verdicts if verdict.claim.needs == need]
        if found:
            open_ = sum(verdict.verdict == "not run" for verdict in found)
            yield need, len(found) - open_, open_
