"""Answers: what the papers' claims together say to a question that a reader comes with, with one figure each.

They stand in ``answers.toml`` beside the papers. The sentences and the cells of the table are written by hand and
their numbers are not. Every ``{claim}`` in them is filled in from what was measured, and so is every
``{artifact/quantity}`` of the functions that the answer names under ``measures``:

    {name}                        value [low, high], of a range "value, from low to high"; of a proxy where the
                                  claim itself was not run
    {name value}, {name ends}     the value alone, or "low to high"
    {name within}                 the end of the interval that is farthest from 0, without its sign
    {name printed}, {name n}      what the paper prints for this claim; the number of repetitions
    {name more}, {name saved}     the same of a logarithm of a ratio, as percentage more (or less) than the other
    {name times}                  the same as the ratio itself
    {name#2 more ends * 100 | .3f}   the second of several values; a factor; a format

An answer names the verdicts that it was written for, and ranges in which measured values must lie. When one turns or
leaves its range, the answer is not told any more.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from suite.claims.estimate import Estimate
from suite.claims.intervals import percent_saved
from suite.claims.judge import Verdict
from suite.papers.catalogue import homes, paper
from suite.papers.measurement import measurements
from suite.report.numerals import between
from suite.runs.archive import Runs

FILE = "answers.toml"
VALUE = re.compile(
    r"\{([\w./-]+)(?:#(\d))?(?: (more|saved|times))?(?: (value|ends|within|printed|n))?"
    r"(?: \* (-?[\d.]+))?(?: \| ([+,.\d]*[feg]))?\}"
)
CHANGED: Mapping[str | None, Callable[[float], float]] = {
    "saved": percent_saved,
    "more": lambda log_ratio: -percent_saved(log_ratio),
    "times": math.exp,
    None: lambda value: value,
}


class AnswerError(ValueError):
    """An answer that the verdicts do not carry."""


@dataclass(frozen=True)
class Answer:
    """A question, the artifact whose figure shows the answer, and sentences and a table with places for numbers.

    ``says`` answers it in some three sentences; what limits the answer, and how it came, are the points of ``more``.
    """

    question: str
    figure: str
    alt: str
    says: str
    written_for: Mapping[str, str]  # claim -> verdict
    more: Sequence[str] = ()
    table: Sequence[Sequence[str]] = ()  # its head, then its rows
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # quantity -> where all its values lie

    @property
    def texts(self) -> Iterator[str]:
        """Everything with places for numbers."""
        for several in ((self.says,), self.more, *self.table):
            yield from several

    @property
    def names(self) -> set[str]:
        """The claims and quantities whose numbers it shows or rests on."""
        return {place[1] for text in self.texts for place in VALUE.finditer(text)} | set(self.ranges)

    def told(self, verdicts: Iterable[Verdict], others: Mapping[str, Estimate]) -> Answer:
        """The answer with its numbers in their places; ``others`` are quantities that no claim asks for.

        Raises AnswerError where a verdict is another, a value left its range, a number is missing or a place is odd.
        """
        wanted = self.names | set(self.written_for)
        found = {verdict.claim.id: verdict for verdict in verdicts if verdict.claim.id in wanted}
        for claim, wanted_verdict in self.written_for.items():
            now = found[claim].verdict if claim in found else "no claim"
            if now != wanted_verdict:
                raise AnswerError(
                    f"the answer to {self.question!r} was written for {claim} {wanted_verdict}, which is {now}; "
                    f"write it anew in {FILE}"
                )
        for name, (least, most) in self.ranges.items():
            values = self._measured(name, found, others).values
            if not all(least <= value <= most for value in values):
                raise AnswerError(
                    f"the answer to {self.question!r} was written for {name} between {least:g} and {most:g}, "
                    f"which is {', '.join(f'{value:g}' for value in values)}; write it anew in {FILE}"
                )

        def fill(text: str) -> str:
            full = VALUE.sub(lambda place: self._number(place, found, others), " ".join(text.split()))
            if "{" in full:
                raise AnswerError(f"the answer to {self.question!r} has a place that names no number: {full!r}")
            return full

        table = [[fill(cell) for cell in row] for row in self.table]
        return replace(self, says=fill(self.says), more=list(map(fill, self.more)), table=table)

    def _measured(self, name: str, found: Mapping[str, Verdict], others: Mapping[str, Estimate]) -> Estimate:
        measured = found[name].measured or found[name].proxy if name in found else others.get(name)
        if measured is None:
            raise AnswerError(f"the answer to {self.question!r} shows {name}, of which there is no single number")
        return measured

    def _number(self, place: re.Match[str], found: Mapping[str, Verdict], others: Mapping[str, Estimate]) -> str:
        name, index, changed, shape, factor, form = place.groups()
        if shape == "printed":
            printed = found[name].claim.printed if name in found else ()
            if len(printed) != 1:
                raise AnswerError(
                    f"the answer to {self.question!r} shows {name}, for which no single number is printed"
                )
            return _text(float(factor or 1) * printed[0], form)
        measured = self._measured(name, found, others)
        if shape == "n":
            return _text(measured.n, form)
        if not index and len(measured.values) != 1:
            raise AnswerError(f"the answer to {self.question!r} shows {name}, of which there is no single number")
        value, *ends = (float(factor or 1) * CHANGED[changed](bound) for bound in measured.spans[int(index or 1) - 1])
        low, high = (_text(end, form) for end in sorted(ends))
        if shape == "ends":
            return f"{low} to {high}"
        if shape == "within":
            return _text(max(map(abs, ends)), form)
        middle = _text(value, form)
        return middle if shape == "value" or low == high else between(middle, low, high, ranged=measured.ranged)


def _text(value: float, form: str | None) -> str:
    return f"{value:{form or '.4g'}}".replace("-", "−")


def beside_claims(found: Iterable[Answer], source: Runs) -> dict[str, Estimate]:
    """The quantities of artifacts that answers name, by ``artifact/quantity``, each at its largest profile."""
    values: dict[str, Estimate] = {}
    for name in {name.rpartition("/")[0] for answer in found for name in answer.names}:
        with suppress(KeyError):  # of a paper that is not here
            artifact = paper(name.partition("/")[0]).artifact(name)
            for claimed in (True, False):
                for measured in reversed(measurements(artifact, source, claimed=claimed).values()):
                    values |= {f"{name}/{quantity}": value for quantity, value in measured.found.items()}
    return values


def answers(homes_of: Iterable[Path] | None = None) -> list[Answer]:
    """Those of all homes of papers, or of some. Raises AnswerError for a file that does not say what it must."""
    found: list[Answer] = []
    for home in homes() if homes_of is None else homes_of:
        if (path := home / FILE).exists():
            try:
                found += [Answer(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["answer"]]
            except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
                raise AnswerError(f"{path}: {error}") from error
    return found
