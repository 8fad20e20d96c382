"""The drawing of ``collapse``: updates x rate against rate / M, one curve for each loss, a panel for each network."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from paper_figures.inverse_law.collapse_runs import (
    NETWORKS,
    Network,
    Prediction,
    known_counts,
    predictions,
)
from paper_figures.inverse_law.plots import plain_decades
from paper_figures.inverse_law.readings import crossings
from suite.batch_size.law import Updates
from suite.papers.artifact import Evidence, Missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 0.9999  # of the pole, up to which a foretold curve is drawn
HEADROOM = 1.6  # above the highest point, where what did not arrive is drawn


class Seen(NamedTuple):
    """A combination as drawn: rate / M, updates x rate (NaN where a seed did not arrive), and whether it is new."""

    ratio: float
    way: float
    new: bool


def draw_networks(evidence: Evidence, figure: Figure) -> None:
    """A panel per network: foretold curves, the points that they were fitted to in grey, the fresh ones in colour."""
    if not evidence.groups:
        raise Missing(f"no runs of the collapse at {evidence.profile}")
    columns = 3
    for place, network in enumerate(NETWORKS, 1):
        axes = figure.add_subplot(-(-len(NETWORKS) // columns), columns, place)
        draw_network(axes, evidence, network, predictions()[network.name])
        if place % columns == 1:
            axes.set_ylabel("updates \u00d7 rate to the loss")
        axes.set_xlabel("rate / M (1 / examples)")
    _key(figure)


def draw_network(axes: Axes, evidence: Evidence, network: Network, foretold: Mapping[float, Prediction]) -> None:
    """One panel; its title says where fresh runs are not stored."""
    from suite.report.style import MARKERS, PALETTE

    seen = {loss: list(_combinations(evidence, network, loss)) for loss in network.thresholds}
    everything = [each for found in seen.values() for each in found]
    ratios = [each.ratio for each in everything] or [rate / m for rate in network.rates for m in network.sizes]
    low = min(ratios)
    ways = [each.way for each in everything if not math.isnan(each.way)]
    top = HEADROOM * max([*ways, *(p.law.way for p in foretold.values())])
    for order, (loss, found) in enumerate(seen.items()):
        _draw_foretold(axes, foretold[loss], low, top, PALETTE[order], f"loss {loss:.3g}")
        _draw_seen(axes, found, top * 1.25**order, PALETTE[order], MARKERS[order])
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_decades(axes)
    axes.set_title(network.title + _lacking(evidence, network), fontsize="small")
    axes.legend(fontsize="small", loc="upper left")


def _lacking(evidence: Evidence, network: Network) -> str:
    """A line that says how many of the fresh runs are stored; nothing where all are."""
    specs = [
        spec for rate in network.rates for m in network.sizes for spec in evidence.groups[network.group(rate, m)]
    ]
    stored = len(evidence.source.ids().intersection(spec.id for spec in specs))
    if stored == len(specs):
        return ""
    return f"\nfresh runs: {f'{stored} of {len(specs)}, shown where all seeds are' if stored else 'not run'}"


def _draw_foretold(axes: Axes, foretold: Prediction, low: float, top: float, colour: str, label: str) -> None:
    """The curve up to its pole, which a dotted line marks."""
    import numpy as np

    pole = 1 / foretold.law.noise
    ratio = np.concatenate([np.geomspace(low, pole / 2, 50), pole * (1 - np.geomspace(0.5, 1 - SHOWN, 50))])
    ways = np.array([foretold.law.predict(1, r) * r for r in ratio])
    axes.plot(ratio[ways < top], ways[ways < top], color=colour, linewidth=1, label=label)
    axes.axvline(pole, color=colour, linewidth=0.8, linestyle=":")


def _draw_seen(axes: Axes, found: Sequence[Seen], top: float, colour: str, marker: str) -> None:
    """Filled where every seed arrived, hollow at the top where one did not; pale where the constants come from."""
    for each in found:
        lost = math.isnan(each.way)
        axes.plot(
            each.ratio, top if lost else each.way, linestyle="none", marker=marker, markersize=5 if each.new else 4,
            color=colour, alpha=1.0 if each.new else 0.35, markerfacecolor="none" if lost else colour,
            markeredgewidth=0.9 if lost else 0,
        )  # fmt: skip


def _combinations(evidence: Evidence, network: Network, loss: float) -> Iterator[Seen]:
    """Those of the stored curves of Fig. 1, then those of the fresh runs; what is not stored is left out."""
    with suppress(Missing):
        for rate, curve in known_counts(evidence, network, loss).items():
            yield from (_seen(rate, u, new=False) for u in curve)
    for rate in network.rates:
        for batch in network.sizes:
            with suppress(Missing):
                (updates,) = crossings(evidence.runs(network.group(rate, batch)), loss)
                yield _seen(rate, updates, new=True)


def _seen(rate: float, u: Updates, *, new: bool) -> Seen:
    if u.censored:
        return Seen(rate / u.batch, math.nan, new)
    return Seen(rate / u.batch, rate * math.exp(math.fsum(math.log(n) for n in u.seen if n) / len(u.seen)), new)


def _key(figure: Figure) -> None:
    """The marks, once above all panels."""
    from matplotlib.lines import Line2D

    from suite.report.style import GRID

    marks = [
        Line2D([], [], color=GRID, linewidth=1, label="foretold"),
        Line2D([], [], color=GRID, linewidth=0.8, linestyle=":", label="its pole, M = $\\kappa$ rate"),
        Line2D([], [], color=GRID, linestyle="none", marker="o", label="fresh runs, mean of the seeds"),
        Line2D([], [], color=GRID, linestyle="none", marker="o", alpha=0.35, label="runs it was fitted to"),
        Line2D(
            [], [], color=GRID, linestyle="none", marker="o", markerfacecolor="none", label="a seed did not arrive"
        ),
    ]
    figure.legend(handles=marks, ncols=len(marks), loc="outside upper left", fontsize="small")
