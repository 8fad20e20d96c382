"""Plots that several figures are made of: axes of batch sizes, and the runs of a threshold with their fitted law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paper_figures.inverse_law.readings import law_fit
from suite.batch_size.law import FitError, Updates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TICKS = 9  # on an axis of batch sizes, at most


def logarithmic(axes: Axes, sizes: Sequence[float]) -> None:
    """Both axes logarithmic and labelled with plain numbers: the batch sizes at hand, and 1, 2, 5 of each decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    shown = sorted(set(sizes))
    shown = shown[:: -(-len(shown) // TICKS)]
    axes.set_xticks(shown, [f"{size:g}" for size in shown])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    decades = math.log10(high / low)
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0,) if decades > 3 else (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if value < 1 else f"{value:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def draw_law(axes: Axes, counted: list[Updates], label: str, order: int = 0) -> None:
    """Runs as points, censored ones hollow at their limit, and the law with its interval where it fits.

    The law stands in the legend. ``order`` chooses colour, marker and line style.
    """
    import numpy as np

    from suite.report.style import LINES, MARKERS, PALETTE

    colour, marker = PALETTE[order], MARKERS[order]
    seen = [(u.batch, n) for u in counted for n in u.seen if n is not None]
    lost = [(u.batch, u.limit or 0.0) for u in counted for n in u.seen if n is None]
    try:
        fit = law_fit(counted)
    except FitError:
        fit = None
    said = f"{label}: {fit.floor:,.0f} + {fit.sensitivity:,.0f}/M" if fit else f"{label}: no fit"
    style: dict[str, Any] = {"linestyle": "none", "marker": marker, "color": colour}
    axes.plot([b for b, _ in seen], [n for _, n in seen], markersize=3.5, label=said, **style)
    axes.plot([b for b, _ in lost], [n for _, n in lost], markersize=5, markerfacecolor="none", **style)
    if fit is None:
        return
    grid = np.geomspace(min(fit.batches), max(fit.batches), 80)
    axes.plot(grid, [fit.predict(m) for m in grid], linestyle=LINES[order], linewidth=1, color=colour)
    bands = [fit.prediction_interval(m) for m in grid]
    low = [max(b.low, 1e-3 * fit.predict(m)) for b, m in zip(bands, grid, strict=True)]
    if all(np.isfinite(low)):
        axes.fill_between(grid, low, [b.high for b in bands], color=colour, alpha=0.2, linewidth=0)


def finish_law(axes: Axes, found: Sequence[Sequence[Updates]]) -> None:
    """Limits that the runs decide, not the intervals; scales and legend."""
    everyone = [u for counted in found for u in counted]
    values = [n if n is not None else u.limit or 1.0 for u in everyone for n in u.seen]
    axes.set_yscale("log")
    axes.set_ylim(min(values) / 1.4, max(values) * 2.2 ** len(found) ** 0.5)  # room for the legend
    logarithmic(axes, [u.batch for u in everyone])
    if any(u.censored for u in everyone):
        axes.plot(
            [], [], linestyle="none", marker="o", color="0.5", markerfacecolor="none", label="not reached (limit)"
        )
    axes.legend(fontsize="small")
