"""How figures look: legible on white and on dark paper, without colour vision, at a sane file size.

Import the names here inside a ``draw`` function; matplotlib is imported only by the functions that need it. The
settings hold while an artifact is drawn and while it is saved; nothing global is changed. The layout is constrained:
a drawing calls neither ``tight_layout`` nor ``subplots_adjust``, which would take the room of the line at its foot.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from suite.lazy import Axes, Figure, np, pd

INK = "#1d1f23"  # axes and text; saved as currentColor in SVG, so a page or a viewer can turn it
GRID = "#85888d"
PRINTED: dict[str, Any] = {"markerfacecolor": "none", "color": INK, "linestyle": "none"}  # open markers, for plot

# Okabe and Ito's hues, moved in lightness until each has a contrast of 3:1 against white and against near-black.
# Neighbours differ in line style too, so colour never carries a distinction alone.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#b5639b", "#b07a00", "#3d93c9", "#7f7f7f")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

RAMP = ("#2f63b5", "#808078", "#c08a10")  # blue, grey, amber: safe for any vision

HEAVY = 2000  # points of a line or a cloud beyond which it is thinned or turned into pixels


INKED = (
    *("axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "legend.labelcolor", "patch.edgecolor"),
    *("text.color", "xtick.color", "ytick.color"),
)


def applied(figure_id: str) -> AbstractContextManager[None]:
    """The settings of the figure of this id while it is drawn and saved, for as long as the context lasts."""
    import matplotlib.style
    from cycler import cycler

    own: Any = dict.fromkeys(INKED, INK) | {"grid.color": GRID, "svg.hashsalt": figure_id}
    own["axes.prop_cycle"] = cycler(color=PALETTE) + cycler(linestyle=LINES)
    common = Path(__file__).with_name("figures.mplstyle")
    return matplotlib.style.context(["default", common, own])  # whatever else the process has set


def plain_numbers(axis: Any, steps: Sequence[float] = (1, 2, 5), numbers: str = "{x:,.0f}") -> None:
    """Plain numbers on a logarithmic axis, at these ``steps`` of each decade."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(numbers)
    axis.set_minor_formatter(NullFormatter())


def named_ticks(axes: Axes, places: Sequence[float], base: float = 10) -> None:
    """A logarithmic horizontal axis with these places named, and no tick between them."""
    axes.set_xscale("log", base=base)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()


def ramp(count: int) -> list[str]:
    """``count`` colours in an order the eye can follow, for an ordered family of curves (staleness 1, 2, 4, ...).

    All have a contrast of 3:1 on white and on near-black, which leaves room for about eight distinct steps.
    """
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    mixed = LinearSegmentedColormap.from_list("ramp", RAMP, N=max(count, 2))
    return [to_hex(mixed(place)) for place in range(count)]


def thin(xs: np.ndarray, ys: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most ``most`` of more points of a curve, ``xs`` and ``ys`` [n], that keep its outline.

    The curve is cut into stretches of equal count and the lowest and highest point of each is kept, so a spike or
    an oscillation survives; so do both ends, and one point of each stretch that is not finite (a gap stays a gap).
    """
    edges = np.linspace(0, len(xs), (most - 2) // 3 + 1).astype(int)
    place, finite = np.arange(len(xs)), np.isfinite(ys)
    stretch = np.searchsorted(edges, place, side="right")
    seen = pd.Series(ys[finite], place[finite]).groupby(stretch[finite])
    gaps = pd.Series(place[~finite]).groupby(stretch[~finite]).first()
    chosen = np.unique([0, len(xs) - 1, *seen.idxmin(), *seen.idxmax(), *gaps])
    return xs[chosen], ys[chosen]


def lighten(figure: Figure) -> None:
    """Thin the long curves of a figure and turn its dense clouds into pixels, so that no SVG grows to megabytes."""
    panels = [panel for axes in figure.axes for panel in (axes, *axes.child_axes)]
    for line in (line for panel in panels for line in panel.lines):
        x, y = np.asarray(line.get_xdata(orig=False)), np.asarray(line.get_ydata(orig=False))
        if len(x) > HEAVY:
            if line.get_marker() not in ("None", "none", "", " ", None):
                line.set_rasterized(True)
            elif line.get_drawstyle() == "default":
                line.set_data(*thin(x, y, HEAVY))
    for cloud in (cloud for panel in panels for cloud in panel.collections):
        points = max(len(np.asarray(cloud.get_offsets())), sum(len(path) for path in cloud.get_paths()))
        if points > HEAVY:
            cloud.set_rasterized(True)
