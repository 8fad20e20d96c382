"""The points of a figure's curves and where they lie in its picture, for a page to tell the one under the pointer."""

from __future__ import annotations

import json
from typing import Any

from suite.lazy import Axes, Figure, np
from suite.report.data import series_label

Look = tuple[Any, ...]  # colour, line and marker
MOST = 120  # points of a curve: more lie too near to each other to be pointed at


def curves(figure: Figure) -> str:
    """The lines of a figure that has been drawn, as JSON ``[[label, name of x, name of y, points], ...]``.

    A point is ``[left, top, x, y]``: its place in ten-thousandths of the picture, and its values as text.
    """
    found = [
        [
            series_label(line) or legend_of(figure, axes).get(look(line), ""),
            axes.get_xlabel(),
            axes.get_ylabel(),
            points(figure, axes, np.asarray(line.get_xydata())),
        ]
        for axes in figure.axes
        for line in axes.lines
        if line.get_transform() == axes.transData  # no line across the whole panel
    ]
    return json.dumps([curve for curve in found if curve[-1]], ensure_ascii=False, separators=(",", ":"))


def points(figure: Figure, axes: Axes, values: np.ndarray) -> list[list[Any]]:
    """Those of values [n, 2] that are seen, thinned to ``MOST`` at most."""
    places = (axes.transData - figure.transFigure).transform(values)  # [n, 2], shares of the figure from below
    least, most = axes.get_position().get_points()
    kept = np.flatnonzero(((places >= least - 1e-6) & (places <= most + 1e-6)).all(1))  # no place that is not finite
    names = [tick_names(axis) for axis in (axes.xaxis, axes.yaxis)]
    found = []
    for i in kept[:: max(1, -(-len(kept) // MOST))]:
        x, y = (name.get(value, f"{value:.4g}") for name, value in zip(names, values[i].tolist(), strict=True))
        found.append([round(1e4 * places[i, 0]), round(1e4 * (1 - places[i, 1])), x, y])
    return found


def tick_names(axis: Any) -> dict[float, str]:
    """What an axis says at ticks that were set by hand, by their place."""
    from matplotlib.ticker import FixedLocator

    places = axis.get_ticklocs() if isinstance(axis.get_major_locator(), FixedLocator) else []
    return dict(zip(places, axis.get_major_formatter().format_ticks(places), strict=True))


def legend_of(figure: Figure, axes: Axes) -> dict[Look, str]:
    """What the legends say of a line's look, where it has no label of its own."""
    legends = [legend for legend in (axes.get_legend(), *figure.legends) if legend]
    return {
        look(handle): text.get_text()
        for legend in legends
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
        if hasattr(handle, "get_linestyle") and hasattr(handle, "get_marker")
    }


def look(line: Any) -> Look:
    return line.get_color(), line.get_linestyle(), line.get_marker()
