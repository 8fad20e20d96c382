"""Tables of what a figure shows, a row per value: what is plotted, or the values of an artifact's claims."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

from suite.claims.board import stand_in, word
from suite.claims.estimate import Estimate
from suite.claims.judge import Verdict
from suite.lazy import Axes, Figure, np, pd

FORMS = ("csv", "parquet")


def known(form: str) -> str:
    """The form itself. Raises ValueError for one that tables are not written in."""
    if form not in FORMS:
        raise ValueError(f"a table is written as one of {', '.join(FORMS)}, not {form!r}")
    return form


def encoded(table: pd.DataFrame, form: str) -> bytes:
    """The table as a file; the same table gives the same bytes. CSV has eight digits, parquet all."""
    if known(form) == "csv":
        return table.to_csv(index=False, lineterminator="\n", float_format="%.8g").encode()
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


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
        yield "line", _label(line), x, y
    for cloud in axes.collections:
        if isinstance(cloud, PathCollection):
            offsets = np.asarray(cloud.get_offsets())
            yield "points", _label(cloud), *offsets.T.tolist()
    for group in axes.containers:
        if isinstance(group, BarContainer):
            upright = group.orientation == "vertical"
            boxes = [bar.get_bbox() for bar in group.patches]
            middles = [(box.x0 + box.x1) / 2 if upright else (box.y0 + box.y1) / 2 for box in boxes]
            ends = [box.y1 if upright else box.x1 for box in boxes]
            yield "bars", _label(group), *((middles, ends) if upright else (ends, middles))


def _label(artist: Any) -> str:
    """Its label in the legend; nothing for one that matplotlib numbers."""
    label = str(artist.get_label() or "")
    return "" if label.startswith("_") else label


def values(verdicts: Iterable[Verdict]) -> pd.DataFrame | None:
    """A row per printed value of each claim with ours and its interval; None without claims."""
    rows = [row for verdict in verdicts for row in rows_of(verdict, verdict.measured)]
    return pd.DataFrame(rows, columns=list(VALUES)) if rows else None


VALUES = ("claim", "says", "printed", "ours", "low", "high", "beside", "unit", "n", "rests on", "verdict", "note")


def rows_of(verdict: Verdict, measured: Estimate | None) -> Iterator[dict[str, Any]]:
    """A row per value of a claim, one where nothing was measured.

    ``beside`` is what was computed near a claim without being its quantity, and decides nothing.
    """
    claim, said = verdict.claim, measured or verdict.proxy
    each = claim.rule == "within" or len(claim.printed) > 1
    beside = verdict.proxy.values if verdict.proxy else (None,)
    spans = [(*span, None) for span in measured.spans] if measured else [(None, None, None, near) for near in beside]
    for index, span in enumerate(spans):
        at = index if each else 0
        yield {
            "claim": claim.id,
            "says": claim.says,
            "printed": claim.printed[at] if len(claim.printed) > at else None,
            **dict(zip(("ours", "low", "high", "beside"), span, strict=True)),
            "unit": claim.unit,
            "n": measured.n if measured else 0,
            "rests on": verdict.rests_on,
            "verdict": word(verdict),
            "exploratory": verdict.exploratory.verdict if verdict.exploratory else "",
            "stand-in": stand_in(verdict),
            "runs": verdict.digest,
            "note": said.note if said else "",
        }
