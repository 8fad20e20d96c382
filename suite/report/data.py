"""Tables of what a figure shows, a row per value: what is plotted, or the values of an artifact's claims.

The committed value of every claim, with the digest of the runs that it rests on, is ``results.csv`` of a home.
Values are compared as numbers, since another processor rounds otherwise: equal is what differs by less than a
millionth of the value or a thousandth of its interval, whichever is larger. A number that moved while its runs did
not is owed a line of reason in the register (``sgd-suite register``), without which ``refresh`` keeps the old one.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from suite.claims.board import WORDS as WORDS_OF
from suite.claims.board import proxy_says, word
from suite.claims.judge import Verdict
from suite.lazy import Axes, Figure, np, pd
from suite.report.numerals import alike, units


def encoded(table: pd.DataFrame, form: str) -> bytes:
    """The table as csv, with eight digits, or parquet, with all; the same table gives the same bytes."""
    if form == "csv":
        return table.to_csv(index=False, lineterminator="\n", float_format="%.8g").encode()
    return table.to_parquet(index=False)


def plotted(figure: Figure) -> pd.DataFrame:
    """A row per point of every line, cloud of points and bar of a figure, with its panel and its series.

    A line across a panel has the coordinate that it marks, and nothing for the other.
    """
    rows = []
    for number, axes in enumerate(figure.axes, 1):
        panel = axes.get_title(loc="left") or axes.get_title() or str(number)
        for kind, series, x, y in _series(axes):
            rows += [(panel, series, kind, *point) for point in zip(x, y, strict=True)]
    return pd.DataFrame(rows, columns=["panel", "series", "kind", "x", "y"])


def _series(axes: Axes) -> Iterator[tuple[str, str, Iterable[Any], Iterable[Any]]]:
    """Kind, label and coordinates of what is drawn in a panel."""
    from matplotlib.collections import PathCollection
    from matplotlib.container import BarContainer

    for line in axes.lines:
        x, y = (np.asarray(values).tolist() for values in (line.get_xdata(), line.get_ydata()))
        if line.get_transform() == axes.get_yaxis_transform():  # y counts in the data, x across the panel
            x, y = [None], y[:1]
        elif line.get_transform() == axes.get_xaxis_transform():
            x, y = x[:1], [None]
        yield "line", series_label(line), x, y
    for cloud in axes.collections:
        if isinstance(cloud, PathCollection):
            offsets = np.asarray(cloud.get_offsets())
            yield "points", series_label(cloud), *offsets.T.tolist()
    for group in axes.containers:
        if isinstance(group, BarContainer):
            upright = group.orientation == "vertical"
            boxes = [bar.get_bbox() for bar in group.patches]
            middles = [(box.x0 + box.x1) / 2 if upright else (box.y0 + box.y1) / 2 for box in boxes]
            ends = [box.y1 if upright else box.x1 for box in boxes]
            yield "bars", series_label(group), *((middles, ends) if upright else (ends, middles))


def series_label(artist: Any) -> str:
    """Its label in the legend; nothing for one that matplotlib numbers."""
    label = str(artist.get_label() or "")
    return "" if label.startswith("_") else label


def values(verdicts: Iterable[Verdict]) -> pd.DataFrame | None:
    """A row per printed value of each claim with ours and its interval; None without claims."""
    rows = [row for verdict in verdicts for row in rows_of(verdict, verdict)]
    return pd.DataFrame(rows, columns=list(VALUES)) if rows else None


VALUES = ("claim", "says", "printed", "ours", "low", "high", "beside", "unit", "n", "rests on", "verdict", "note")


def rows_of(verdict: Verdict, by: Verdict) -> Iterator[dict[str, Any]]:
    """A row per value of a claim as the rule of ``by`` reads it, one where nothing was measured.

    ``beside`` is what was computed near a claim without being its quantity, and decides nothing.
    """
    claim, measured = by.claim, by.measured
    said = measured or verdict.proxy
    beside = verdict.proxy.values if verdict.proxy else (None,)
    spans = [(*span, None) for span in measured.spans] if measured else [(None, None, None, near) for near in beside]
    for index, span in enumerate(spans):
        at = index if claim.rule == "within" or len(claim.printed) > 1 else 0
        yield {
            "claim": claim.id,
            "says": claim.says,
            "printed": claim.printed[at] if claim.basis == "printed" and len(claim.printed) > at else None,
            **dict(zip(("ours", "low", "high", "beside"), span, strict=True)),
            "unit": units(claim.displayed_unit, len(spans))[index],
            "n": measured.n if measured else 0,
            "rests on": verdict.rests_on,
            "verdict": word(verdict),
            "exploratory": verdict.exploratory.verdict if verdict.exploratory else "",
            "proxy": proxy_says(verdict),
            "runs": verdict.digest,
            "note": said.note if said else "",
        }


FILE = "results.csv"  # in a paper's home

Row = dict[str, str]
NUMBERS = ("ours", "low", "high", "beside")
WORDS = ("printed", "unit", "n", "rests on", "verdict", "exploratory", "proxy", "runs")
COLUMNS = ("claim", "says", "printed", *NUMBERS, *WORDS[1:], "note")
RELATIVE, OF_INTERVAL, NOTHING = 1e-6, 1e-3, 1e-9  # what is less than the last is rounding


def rows(verdicts: Iterable[Verdict]) -> list[Row]:
    """A row per value of each claim as it is measured today, one where nothing was measured."""
    found = (row for verdict in verdicts for row in rows_of(verdict, verdict.present))
    return [{name: _text(row[name]) for name in COLUMNS} for row in found]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return "0" if abs(value) < NOTHING else f"{value:.10g}"
    return str(value)


def read(text: str) -> list[Row]:
    """The rows of a committed table."""
    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False).to_dict("records")


def written(table: Iterable[Mapping[str, str]]) -> str:
    """Rows as the file holds them."""
    return pd.DataFrame(table, columns=list(COLUMNS)).to_csv(index=False, lineterminator="\n")


def same(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether two rows of a claim say the same, to rounding."""
    if any(before.get(name, "") != now[name] for name in WORDS) or before["says"] != now["says"]:
        return False
    return same_numbers(before, now) and alike(before["note"], now["note"])


def same_numbers(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether two rows hold the same numbers, to a millionth of the value or a thousandth of its interval."""
    width = float(now["high"]) - float(now["low"]) if now["low"] else 0.0
    near = OF_INTERVAL * width if math.isfinite(width) else 0.0
    return all(_near(before.get(name, ""), now[name], near) for name in NUMBERS)


def _near(before: str, now: str, near: float) -> bool:
    if before == now or not (before and now):
        return before == now
    a, b = float(before), float(now)
    return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=max(near, NOTHING))


def by_claim(table: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each claim."""
    found: dict[str, list[Row]] = {}
    for row in table:
        found.setdefault(row["claim"], []).append(row)
    return found


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
        known = old.get(claim, [])
        alike = len(known) == len(rows) and all(map(same, known, rows))
        table += known if alike or (known and claim in kept) else rows
    return table
