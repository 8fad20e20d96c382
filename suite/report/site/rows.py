"""The artifacts as the index and the papers' pages list them, and how their pages are made."""

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
from typing import NamedTuple

from suite.claims.board import NOTHING, WORDS, word
from suite.claims.judge import VERDICTS, Verdict
from suite.papers.artifact import Artifact, Paper
from suite.papers.catalogue import paper, published
from suite.papers.verdicts import judge_artifacts
from suite.report.site.exhibit import files
from suite.report.site.page_cache import read_once
from suite.runner.gc_tuning import search_rarely
from suite.runs.archive import Runs

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


def judged(which: Paper, row: Row, source: Runs) -> list[Verdict]:
    """The verdicts on a row's claims."""
    return judge_artifacts(which, [row.id], None, source)


def make(place: PagePlace, source: Runs) -> Made:
    """An artifact's verdicts and files, and the programming error that kept it from being drawn."""
    which = paper(place.id.partition("/")[0])
    rows = [None, *(row for row in rows_of(which) if row.id in place.among or not place.among), None]
    number = next(number for number, row in enumerate(rows) if row and row.id == place.id)
    before, row, after = rows[number - 1 : number + 2]
    assert row is not None
    found = judged(which, row, source)
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
            yield chain.from_iterable(pool.map(_make, stretches(todo)))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():  # nobody waits for the page that it is making
                process.terminate()
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
