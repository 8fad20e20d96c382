"""The committed value of every claim, with the digest of the runs that it rests on: ``results.csv`` of a home.

Values are compared as numbers, since another processor rounds otherwise: equal is what differs by less than a
millionth of the value or a thousandth of its interval, whichever is larger. A number that moved while its runs did
not is owed a line of reason in the register (``sgd-suite register``), without which ``refresh`` keeps the old one.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from typing import Any

from suite.claims.board import WORDS as WORDS_OF
from suite.claims.judge import Verdict
from suite.report.data import rows_of
from suite.report.numerals import alike

FILE = "results.csv"  # in a paper's home

Row = dict[str, str]
NUMBERS = ("ours", "low", "high", "beside")
WORDS = ("printed", "unit", "n", "rests on", "verdict", "exploratory", "stand-in", "runs")
COLUMNS = ("claim", "says", "printed", *NUMBERS, *WORDS[1:], "note")
RELATIVE, OF_INTERVAL, NOTHING = 1e-6, 1e-3, 1e-9  # what is less than the last is rounding


def rows(verdicts: Iterable[Verdict]) -> list[Row]:
    """A row per value of each claim as it is measured today, one where nothing was measured."""
    found = (row for verdict in verdicts for row in rows_of(verdict, verdict.present.measured))
    return [{name: _text(row[name]) for name in COLUMNS} for row in found]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return "0" if abs(value) < NOTHING else f"{value:.10g}"
    return str(value)


def read(text: str) -> list[Row]:
    """The rows of a committed table."""
    return [dict(row) for row in csv.DictReader(io.StringIO(text))]


def written(table: Iterable[Mapping[str, str]]) -> str:
    """Rows as the file holds them."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return out.getvalue()


def same(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether two rows of a claim say the same, to rounding."""
    if any(before.get(name, "") != now[name] for name in WORDS) or before["says"] != now["says"]:
        return False
    return same_numbers(before, now) and alike(before["note"], now["note"])


def same_numbers(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether two rows hold the same numbers, to a millionth of the value or a thousandth of its interval."""
    width = _number(now["high"]) - _number(now["low"]) if now["low"] else 0.0
    near = OF_INTERVAL * width if math.isfinite(width) else 0.0
    return all(_near(before.get(name, ""), now[name], near) for name in NUMBERS)


def _near(before: str, now: str, near: float) -> bool:
    if before == now or not (before and now):
        return before == now
    a, b = float(before), float(now)
    return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=max(near, NOTHING))


def _number(text: str) -> float:
    return float(text) if text else math.nan


def by_claim(table: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each claim."""
    found: dict[str, list[Row]] = {}
    for row in table:
        found.setdefault(row["claim"], []).append(row)
    return found


def differing(before: Iterable[Row], now: Iterable[Row]) -> list[str]:
    """Claims of which a row says something else, is new or is gone."""
    old, new = by_claim(before), by_claim(now)
    return [claim for claim in {**old, **new} if not _alike(old.get(claim, []), new.get(claim, []))]


def _alike(old: list[Row], new: list[Row]) -> bool:
    return len(old) == len(new) and all(map(same, old, new))


def moved(before: Iterable[Row], now: Iterable[Row]) -> dict[str, list[Row]]:
    """The committed rows of claims whose numbers moved although they were read from the same runs."""
    old, new = by_claim(before), by_claim(now)
    found = {}
    for claim in old.keys() & new.keys():
        rows = old[claim], new[claim]
        if not all(row["ours"] and "runs" in row for table in rows for row in table):
            continue  # nothing was measured, before or now
        stayed = rows[0][0]["runs"] == rows[1][0]["runs"] and len(rows[0]) == len(rows[1])
        if stayed and not all(map(same_numbers, *rows)):
            found[claim] = rows[0]
    return found


def number_of(table: list[Row]) -> dict[str, Any]:
    """Number and verdict of a claim's rows as the register holds them: the verdict by the rule of the time."""
    first = table[0]
    said = first["exploratory"] or first["verdict"]
    verdict = next((verdict for verdict, word in WORDS_OF.items() if word == said), said)
    spans = {
        name: [float(row[of]) for row in table] for name, of in (("values", "ours"), ("low", "low"), ("high", "high"))
    }
    return {"runs": first["runs"], "verdict": verdict, **spans}


def merged(before: Iterable[Row], now: Iterable[Row], kept: Iterable[str] = ()) -> list[Row]:
    """Today's rows, those of before where they say the same, and for the claims ``kept`` in any case."""
    old, new, kept = by_claim(before), by_claim(now), set(kept)
    table = []
    for claim, rows in new.items():
        stays = claim in old and (claim in kept or _alike(old[claim], rows))
        table += old[claim] if stays else rows
    return table
