"""What a measure reads of a run, it uses: no number of those results can be larger without some value moving.

A measure that takes the best of a list for its worst, or one entry for all, ignores the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from suite.papers.artifact import Evidence
from suite.papers.catalogue import PAPERS, paper
from suite.papers.counterfeits import forged, replaced
from suite.papers.evidence import committed
from suite.papers.measurement import Measurement, measure_evidence
from suite.papers.panel import Panel
from suite.report.site.page_cache import ReadOnce
from suite.runs.archive import Layered, Runs
from suite.runs.store import Run

pytestmark = pytest.mark.evidence

TOLD = "told in a note, a label or a condition alone"
MEDIAN = "one repetition of several, of which the median counts"
BELOW = "the least counts, or a bound from below, so that only a smaller one moves anything"
EXCEPTIONS = {
    ("inverse_law/attention", "least"): BELOW,
    ("inverse_law/words", "short"): TOLD,
}
ENDS = 4  # entries tried at either end and in the middle of a long list


@pytest.fixture(scope="module")
def source() -> Runs:
    return ReadOnce(Layered(committed()))


def numbers(value: Any, at: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Where the numbers stand in a result, which may be a number, or lists of them."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from numbers(entry, (*at, index))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield at


def moved(value: Any, at: tuple[int, ...], sign: int) -> Any:
    """The result with the number at a place far above, or below, what it was."""
    if not at:
        return value + sign * (1 + abs(value))
    return [moved(entry, at[1:], sign) if index == at[0] else entry for index, entry in enumerate(value)]


def tried(value: Any) -> list[tuple[int, ...]]:
    places = list(numbers(value))
    if len(places) <= 3 * ENDS:
        return places
    middle = len(places) // 2
    return [*places[:ENDS], *places[middle : middle + ENDS], *places[-ENDS:]]


def said(found: Measurement) -> str:
    """Every value with its interval, and what could not be measured."""
    spans = {name: measured.spans for name, measured in found.found.items()}
    return repr((spans, list(found.missing.values()), found.damaged))


def ignored(artifact: Any, source: Runs) -> Iterator[tuple[tuple[str, str], bool]]:
    """Experiment and result of every number that is read and moves nothing when larger; whether it does when smaller.

    Errors, differences and times are bad when they are large: a measure that tells the worst must see each of them.
    """
    if isinstance(artifact, Panel):
        return  # its quantities are held to known answers
    evidence = Evidence(source, artifact.runs("smoke"), "smoke")
    measurement = measure_evidence(artifact, evidence)
    before = said(measurement)

    def changed(run: Run, name: str, place: tuple[int, ...], sign: int) -> bool:
        other = forged(run, {name: moved(run.results[name], place, sign)})
        return said(measure_evidence(artifact, replaced(evidence, {run.id: other}))) != before

    read = {(of.spec, name) for rests in measurement.rests.values() for of in rests.runs for name in of.results}
    for spec, name in sorted(read, key=lambda pair: (pair[0].id, pair[1])):
        if spec.experiment == "train" or name not in (run := source.read(spec.id)).results:
            continue
        for place in tried(run.results[name]):
            if not changed(run, name, place, 1):
                yield (spec.experiment, name), changed(run, name, place, -1)


@pytest.mark.parametrize("name", PAPERS)
def test_every_number_that_a_measure_reads_moves_a_value(name, source):
    seen = {}
    for artifact in paper(name).artifacts:
        for result, below in ignored(artifact, source):
            seen.setdefault(result, set()).add((artifact.id, below))
    unexplained = {result: places for result, places in seen.items() if result not in EXCEPTIONS}
    assert not unexplained
    not_below = {
        result: places
        for result, places in seen.items()
        if EXCEPTIONS[result] == BELOW and not all(below for _, below in places)
    }
    assert not not_below
    gone = {result for result in EXCEPTIONS if result[0].startswith(f"{name}/")} - set(seen)
    assert not gone, "every number of these is used now"
