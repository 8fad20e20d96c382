"""Where each claim of before went: ``published/places.csv``, a line for every id that a claim once had.

``becomes`` is *claim* (``target`` is the id itself, or the claim that it is merged into), *row* (of the claim in
``target``), *test* (``target`` is its file and function), *contradiction* (of the paper, told by the claim in
``target``) or *figure* (``target`` is the artifact whose picture shows it).
"""

from __future__ import annotations

import csv
from functools import cache
from typing import NamedTuple

from suite.papers.registry import homes

FILE = "places.csv"
KINDS = ("claim", "row", "test", "contradiction", "figure")


class Place(NamedTuple):
    """What became of an id, and where."""

    becomes: str
    target: str


@cache
def places() -> dict[str, Place]:
    """All lines of all homes by id."""
    found: dict[str, Place] = {}
    for home in homes():
        if (path := home / "published" / FILE).exists():
            with path.open(encoding="utf-8", newline="") as stream:
                found |= {row["id"]: Place(row["becomes"], row["target"]) for row in csv.DictReader(stream)}
    return found


def moved(claim: str) -> str:
    """A sentence on an id that is no claim any more; "" for one that never was, or still is."""
    place = places().get(claim)
    if place is None or place.target == claim or place.becomes == "row":
        return ""
    what = {"claim": "is part of the claim", "test": "is held by the test", "figure": "is a line of the figure"}
    return f"{claim} {what.get(place.becomes, 'is told with the contradiction')} {place.target}"
