"""The site written: artifact by artifact, each only when what its page follows from has changed.

The artifacts as the index and the papers' pages list them, and how their pages are made.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, groupby
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from suite.claims.board import NOTHING, WORDS, board, word
from suite.claims.judge import NEEDS, VERDICTS, Verdict
from suite.clock import counted
from suite.interruption import blocked
from suite.papers.artifact import Artifact, Paper
from suite.papers.catalogue import paper, published, select
from suite.papers.measurement import judge_artifacts
from suite.report.answers import Answer, AnswerError, Told, answers, beside_claims
from suite.report.readme import first_told
from suite.report.site.exhibit import files, module_of, text_of
from suite.report.site.page_cache import NAME, Folder, digest_of, key_of, read_once, seals, state
from suite.report.site.render import ASSETS, HERE, render
from suite.report.verdict_details import departure_ledgers
from suite.runner.gc_tuning import search_rarely
from suite.runs.archive import Runs
from suite.runs.environment import ROOT, revision
from suite.runs.run import StoreError

ALL_WORDS = tuple(dict.fromkeys((*VERDICTS, *WORDS.values())))
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
    files: Collection[str] = ()  # of its page and its pictures

    def picture(self, kind: str) -> str:
        """The path of a picture: "svg" or "panel.svg"; nothing where it is not there."""
        path = f"{self.id}.{kind}"
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


SHARED = "the site"  # the group of files that belong to no artifact


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
    check_place(Path(out))
    if folder.complete(whole):
        return Built(index, len(folder.groups) - 1, 0, 0)
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
            for section in sections:
                anew = 0
                for row in section.artifacts:
                    if places[row.id] in todo:
                        row.verdicts, files, fault = next(made)
                        folder.put(row.id, "" if fault else keys[row.id], files)  # without a key: made again
                        faults += [fault] if fault else []
                        anew += 1
                    else:
                        row.verdicts = judge_artifacts(section.paper, [row.id], None, source)
                    row.files = folder.groups[row.id].files
                tell(f"{section.paper.name}: {counted(len(section.artifacts), 'artifact')}, {anew} made anew")
    finally:
        folder.save()
    folder.put(SHARED, whole, _shared(sections, about, source))
    folder.close("" if faults else whole, [SHARED, *keys])
    return Built(index, len(keys), len(todo), len(folder.written), tuple(faults))


def check_place(out: Path) -> None:
    """Raise StoreError where a page of somebody else stands where a report would."""
    if (out / "index.html").exists() and not (out / NAME).exists():
        raise foreign(out / "index.html")


def foreign(page: Path) -> StoreError:
    """That a page of somebody else stands where a report would."""
    return StoreError(f"{page} is there and was not written by `report`; move it, or name another folder with --out")


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


def _shared(sections: list[Section], about: dict[str, Any], source: Runs) -> dict[str, bytes]:
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
        revision=about,
    )
    made["about.html"] = render("about.html.j2", ledgers=departure_ledgers(ROOT / "reference_impls"))
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
        if found := [verdict.verdict for verdict in verdicts if verdict.claim.needs == need]:
            absent = found.count("not run")
            yield need, len(found) - absent, absent
