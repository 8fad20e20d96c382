"""Answers: what the papers' claims together say to a question that a reader comes with, with one figure each.

They stand in ``answers.toml`` beside the papers. The sentences are written by hand and their numbers are not: every
``{claim}`` in them is filled in from what was measured, as ``value [low, high]``, and ``{claim * factor | format}``
shows a multiple, ``{claim saved | format}`` the percentage that is saved where the claim measures a logarithm of the
larger over the smaller. Each names the verdicts that it was written for; when one turns, it is not told any more.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from suite.claims.intervals import percent_saved
from suite.claims.judge import Verdict
from suite.papers.registry import homes

FILE = "answers.toml"
VALUE = re.compile(r"\{([\w./-]+)(?: (saved)| \* (-?[\d.]+))?(?: \| ([+,.\d]*[feg]))?\}")


class AnswerError(ValueError):
    """An answer that the verdicts do not carry."""


@dataclass(frozen=True)
class Answer:
    """A question, the artifact whose figure shows the answer, and the sentences with places for numbers."""

    question: str
    figure: str
    alt: str
    says: str
    written_for: Mapping[str, str]  # claim -> verdict

    def told(self, verdicts: Iterable[Verdict]) -> str:
        """The sentences with their numbers. Raises AnswerError where a verdict is another, or a number is missing."""
        found = {verdict.claim.id: verdict for verdict in verdicts if verdict.claim.id in self.written_for}
        for claim, wanted in self.written_for.items():
            now = found[claim].verdict if claim in found else "no claim"
            if now != wanted:
                raise AnswerError(
                    f"the answer to {self.question!r} was written for {claim} {wanted}, which is {now}; "
                    f"write it anew in {FILE}"
                )
        return " ".join(VALUE.sub(lambda place: self._number(place, found), self.says).split())

    def _number(self, place: re.Match[str], found: Mapping[str, Verdict]) -> str:
        claim, saved, factor, form = place.groups()
        measured = found[claim].measured if claim in found else None
        if measured is None or len(measured.values) != 1:
            raise AnswerError(f"the answer to {self.question!r} shows {claim}, of which there is no single number")
        bounds = measured.values[0], measured.low[0], measured.high[0]
        shown = percent_saved if saved else (lambda bound: float(factor or 1) * bound)
        value, *ends = map(shown, bounds)
        low, high = sorted(ends)
        return f"{value:{form or 'g'}} [{low:{form or 'g'}}, {high:{form or 'g'}}]".replace("-", "−")


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
