"""The site: the artifacts as the index and the papers' pages list them, and how their pages are made."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, groupby
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from suite.claims.board import NOTHING, WORDS, board, word
from suite.claims.judge import NEEDS, VERDICTS, Verdict
from suite.clock import counted
from suite.interruption import blocked
from suite.papers.artifact import Artifact, Paper
from suite.papers.catalogue import paper, published, select
from suite.papers.evidence import read_once
from suite.papers.measurement import judge_artifacts
from suite.report.answers import Answer, AnswerError, Told, answers, beside_claims
from suite.report.drawing import write
from suite.report.readme import first_told
from suite.report.site.exhibit import files
from suite.report.site.render import ASSETS, HERE, render
from suite.report.verdict_details import departure_ledgers
from suite.runner.gc_tuning import search_rarely
from suite.runs.archive import Runs
from suite.runs.environment import ROOT, revision
from suite.runs.run import StoreError

ALL_WORDS = tuple(dict.fromkeys((*VERDICTS, *WORDS.values())))
INDEX = "index.html"
FEW = 8  # artifacts that are made sooner than another process has started
PROCESSES = 8  # at most
STRETCH = 16  # artifacts that one process makes in a row

Reopen = Callable[[], Runs]


class PagePlace(NamedTuple):
    """An artifact, and between which ids its page stands; none: between all of its paper's."""

    id: str
    among: tuple[str, ...] = ()


Made = tuple[list[Verdict], dict[str, bytes], str]  # verdicts, files, programming error


@dataclass
class Row:
    """An artifact as the index and its paper's page list it."""

    id: str
    title: str
    artifact: Artifact | None
    verdicts: list[Verdict] = field(default_factory=list)
    files: Mapping[str, bytes] = field(default_factory=dict)  # of its page

    @property
    def picture(self) -> str:
        """The path of its figure; nothing where it has none."""
        path = f"{self.id}.svg"
        return path if path in self.files else ""

    @property
    def tally(self) -> Counter[str]:
        """Claims by what is said of them, in the order of the boards."""
        counted = Counter(map(word, self.verdicts))
        return Counter({name: counted[name] for name in ALL_WORDS if counted[name]})

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


def rows_of(which: Paper) -> list[Row]:
    """The paper's artifacts, then those that nothing measures yet."""
    rows = {artifact.id: Row(artifact.id, artifact.title, artifact) for artifact in which.artifacts}
    for claim in published(which.name):
        rows.setdefault(claim.artifact, Row(claim.artifact, claim.artifact.partition("/")[2], None))
    return list(rows.values())


def make(place: PagePlace, source: Runs) -> Made:
    """An artifact's verdicts and files, and the programming error that kept it from being drawn."""
    which = paper(place.id.partition("/")[0])
    rows = [None, *(row for row in rows_of(which) if row.id in place.among or not place.among), None]
    number = next(number for number, row in enumerate(rows) if row and row.id == place.id)
    before, row, after = rows[number - 1 : number + 2]
    assert row is not None
    found = judge_artifacts(which, [row.id], None, source)
    return found, *files(which, row.id, row.artifact, found, source, {"before": before, "after": after})


@contextlib.contextmanager
def makers(source: Runs, todo: Sequence[PagePlace], reopen: Reopen | None) -> Iterator[Iterator[Made]]:
    """``make`` of each place in order; in several processes where there are many."""
    processes = min(len(os.sched_getaffinity(0)), PROCESSES)
    if reopen is None or processes == 1 or len(todo) <= FEW:
        yield (make(place, source) for place in todo)
        return
    # not forked: a fork would share the offsets of open archives
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (reopen,)) as pool:
        try:
            with blocked():  # in the processes for good: a Ctrl-C reaches them too, and this one ends them
                made = pool.map(_make, stretches(todo))
            yield chain.from_iterable(made)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():  # nobody waits for the page that it is making
                process.kill()
            raise


_OPENED: list[Runs] = []  # in a process of ``makers``, its source


def _begin(reopen: Reopen) -> None:
    threading.Thread(target=_end_with, args=(parent_process(),), daemon=True).start()
    search_rarely()
    _OPENED.append(read_once(reopen()))


def _end_with(parent: BaseProcess | None) -> None:
    """End this process when its parent is gone, however that ended: otherwise it would wait for orders for ever."""
    if parent:
        parent.join()
        os._exit(1)


def stretches(todo: Sequence[PagePlace]) -> list[list[PagePlace]]:
    """The places of one paper after another, ``STRETCH`` at most together: what pages share is read once."""
    papers = [list(places) for _, places in groupby(todo, key=lambda place: place.id.partition("/")[0])]
    return [places[at : at + STRETCH] for places in papers for at in range(0, len(places), STRETCH)]


def _make(places: Sequence[PagePlace]) -> list[Made]:
    return [make(place, _OPENED[0]) for place in places]


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


def make_site(
    source: Runs,
    tell: Callable[[str], None] = lambda line: None,
    reopen: Reopen | None = None,
    selectors: Sequence[str] = (),
) -> Site:
    """The site of the selected artifacts. The same runs and the same code give the same bytes.

    ``tell`` is told of each paper. With ``reopen``, which opens the same source in another process, many artifacts
    are made in several.
    """
    source = read_once(source)
    sections, todo = chosen(selectors)
    files, faults = dict[str, bytes](), list[str]()
    with makers(source, todo, reopen) as made:
        for section in sections:
            for row in section.artifacts:
                row.verdicts, row.files, fault = next(made)
                files |= row.files
                faults += [fault] if fault else []
            tell(f"{section.paper.name}: {counted(len(section.artifacts), 'artifact')}")
    return Site(_shared(sections, source) | files, len(todo), tuple(faults))


def write_site(
    source: Runs,
    out: Path,
    tell: Callable[[str], None] = lambda line: None,
    reopen: Reopen | None = None,
    selectors: Sequence[str] = (),
) -> tuple[Path, Site]:
    """Write ``make_site`` into ``out``; its index and the site. Raises StoreError where it cannot be written."""
    index = Path(out) / INDEX
    check_place(index)
    site = make_site(source, tell, reopen, selectors)
    for path, data in site.files.items():
        write(Path(out) / path, data)
    return index, site


def check_place(page: Path) -> None:
    """Raise StoreError where a page of somebody else stands in the place of one of a report."""
    if page.exists() and b"sgd-suite" not in page.read_bytes():
        raise StoreError(
            f"{page} is there and was not written by `report`; move it, or name another folder with --out"
        )


def chosen(selectors: Sequence[str]) -> tuple[list[Section], list[PagePlace]]:
    """The selected artifacts by paper, and in the same order where each stands. Raises SelectorError."""
    sections, places = list[Section](), list[PagePlace]()
    for which, artifacts in select(selectors):
        wanted = {artifact.id for artifact in artifacts}
        rows = [row for row in rows_of(which) if row.id in wanted or not selectors]
        # A page names its neighbours, so that one among few is another than the same among all.
        among = tuple(row.id for row in rows) if selectors else ()
        sections.append(Section(which, rows))
        places += [PagePlace(row.id, among) for row in rows]
    return sections, places


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
        if found := [verdict.verdict for verdict in verdicts if verdict.claim.needs == need]:
            absent = found.count("not run")
            yield need, len(found) - absent, absent
