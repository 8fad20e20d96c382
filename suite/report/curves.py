"""The points of a figure's curves and where they lie in its picture, for a page to tell the one under the pointer."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from suite.lazy import Axes, Figure, np
from suite.report.data import series_label
from suite.report.numerals import number

Look = tuple[Any, ...]  # colour, line and marker
MOST = 120  # points of a curve: more lie too near to each other to be pointed at


def curves(figure: Figure) -> str:
    """The lines of a figure that has been drawn, as JSON ``[[label, name of x, name of y, points], ...]``.

    A point is ``[left, top, x, y]``: its place in ten-thousandths of the picture, and its values as text.
    """
    found = [curve for axes in figure.axes for curve in of_panel(figure, axes)]
    return json.dumps([curve for curve in found if curve[-1]], ensure_ascii=False, separators=(",", ":"))


def of_panel(figure: Figure, axes: Axes) -> Iterator[list[Any]]:
    """The curves of one panel; its names and legends are the same for all of them."""
    across, up, legend = plain(axes.get_xlabel()), plain(axes.get_ylabel()), legend_of(figure, axes)
    names = [tick_names(axis) for axis in (axes.xaxis, axes.yaxis)]
    for line in axes.lines:
        if line.get_visible() and line.get_transform() == axes.transData:  # no line across the whole panel
            label = plain(series_label(line) or legend.get(look(line), ""))
            yield [label, across, up, points(figure, axes, np.asarray(line.get_xydata()), names)]


def points(figure: Figure, axes: Axes, values: np.ndarray, names: list[dict[float, str]]) -> list[list[Any]]:
    """Those of values [n, 2] that are seen, thinned to ``MOST`` at most; ticks have their ``names``."""
    places = (axes.transData - figure.transFigure).transform(values)  # [n, 2], shares of the figure from below
    least, most = axes.get_position().get_points()
    kept = np.flatnonzero(((places >= least - 1e-6) & (places <= most + 1e-6)).all(1))  # no place that is not finite
    found = []
    for i in kept[:: max(1, -(-len(kept) // MOST))]:
        pair = zip(names, values[i].tolist(), strict=True)
        x, y = (named.get(value, number(value, digits=4)) for named, value in pair)
        found.append([round(1e4 * places[i, 0]), round(1e4 * (1 - places[i, 1])), x, y])
    return found


def tick_names(axis: Any) -> dict[float, str]:
    """What an axis says at ticks that were named by hand, by their place."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    locator, formatter = axis.get_major_locator(), axis.get_major_formatter()
    if not isinstance(locator, FixedLocator) or not isinstance(formatter, FuncFormatter):
        return {}  # another formatter may set a factor apart, or write a power in TeX
    places = axis.get_ticklocs()
    return dict(zip(places, map(plain, formatter.format_ticks(places)), strict=True))


def plain(label: str) -> str:
    """A label in one line, with TeX's Greek letters as characters and without its dollars."""
    letters = re.sub(r"\\([a-z]+)", r"&\1;", label.replace(r"\infty", "∞"))
    return " ".join(html.unescape(letters).replace("$", "").split())


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
    from matplotlib.colors import to_rgba

    return to_rgba(line.get_color()), line.get_linestyle(), line.get_marker()
