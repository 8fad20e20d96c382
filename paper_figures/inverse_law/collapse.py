"""A question of ours: is the inverse law the first order of one curve for all learning rates, with a pole?

Counted as updates x rate, the time to a loss would depend on rate / M alone,

    N(M, eta) = (t0 - tau ln(1 - kappa eta / M)) / eta,

and where kappa eta / M is 1 and more the loss would never be reached. The constants are in
``published/predictions/inverse_law.toml``, written before the runs that are judged here: other rates, fresh seeds.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from paper_figures.inverse_law import joint
from paper_figures.inverse_law.drawing import plain_decades
from paper_figures.inverse_law.joint import Network, Prediction
from paper_figures.inverse_law.law import crossings, searches
from paper_figures.inverse_law.misfits import Misfits, largest
from paper_figures.inverse_law.settings import LIMIT
from suite.batch_size.law import Updates
from suite.claims.intervals import LEVEL, Interval, jackknife_variance, quantile
from suite.papers.figure import Artifact, Axes, Figure, Frame, Missing, np, pd
from suite.report.style import GRID, MARKERS, PALETTE

ARRIVES, FAILS = 0.8, 1.1  # kappa rate / M below which a batch is foretold to arrive, above which not to
NEAR, POLE = 0.25, 0.7  # kappa rate / M between which the misfit tells the laws apart: beyond, seeds scatter too much
SHOWN = 0.9999  # of the pole, up to which a foretold curve is drawn
HEADROOM = 1.6  # above the highest point, where what did not arrive is drawn

PANEL = Artifact(
    "inverse_law/collapse",
    "Updates x rate against rate / M: one curve for all learning rates, foretold",
    joint.collapse_runs,
    size=(10.0, 7.0),
    beside=joint.known_runs,
)


class Point(NamedTuple):
    """One combination of threshold, rate and batch size with its updates by seed."""

    threshold: float
    rate: float
    updates: Updates
    foretold: Prediction

    @property
    def load(self) -> float:
        """kappa rate / M by the constants fixed before."""
        return self.foretold.law.load(self.updates.batch, self.rate)

    @property
    def arrives(self) -> bool:
        """Whether the threshold is foretold to be reached within the limit."""
        return self.load < ARRIVES and self.foretold.law.predict(self.updates.batch, self.rate) <= LIMIT

    @property
    def decided(self) -> bool:
        """Whether the constants say clearly enough that this combination arrives, or that it does not."""
        return not ARRIVES <= self.load <= FAILS


def points(frame: Frame, network: Network, *, whole: bool = True) -> list[Point]:
    """All combinations of a network; without ``whole`` those of which every seed is stored."""
    found, foretold = [], joint.predictions()[network.name]
    for rate in network.rates:
        for batch in network.sizes:
            if not whole and not frame.whole(network.group(rate, batch)):
                continue
            runs = searches(frame, [network.group(rate, batch)])
            for threshold in network.thresholds:
                (updates,) = crossings(runs, threshold)
                found.append(Point(threshold, rate, updates, foretold[threshold]))
    return found


def far_and_near(frame: Frame, network: Network) -> tuple[list[Point], list[Point]]:
    """The combinations that arrived as foretold: far from the pole, and on the way to it."""
    arrived = [p for p in points(frame, network) if p.arrives and not p.updates.censored]
    return [p for p in arrived if p.load <= NEAR], [p for p in arrived if NEAR < p.load < POLE]


# ---------------------------------------------------------------- quantities of one network


def far(network: Network, frame: Frame) -> Interval:
    """The largest relative misfit of the joint law far from the pole."""
    return largest([_misfits(far_and_near(frame, network)[0])])


def near(network: Network, frame: Frame) -> Interval:
    """The joint law's root mean square misfit on the way to the pole."""
    return jackknife(log_misfits(far_and_near(frame, network)[1])[0], rms)


def beyond_first_order(network: Network, frame: Frame) -> Interval:
    """By how much the joint law foretells better there than the printed law scaled to every rate."""
    return better(*log_misfits(far_and_near(frame, network)[1]))


def arrivals(network: Network, frame: Frame) -> Interval:
    """The share of combinations near the pole whose arrival, or failure to arrive, was foretold."""
    return share_foretold(points(frame, network))[0]


def size_told(which: int, network: Network, frame: Frame) -> str:
    return f"{len(far_and_near(frame, network)[which])} points"


for network in joint.NETWORKS:
    groups = [network.group(rate, batch) for rate in network.rates for batch in network.sizes]
    for name, value, note in (
        ("far", far, partial(size_told, 0, network)),
        ("rms", near, partial(size_told, 1, network)),
        ("beyond-first-order", beyond_first_order, partial(size_told, 1, network)),
        ("arrivals", arrivals, lambda frame, network=network: share_foretold(points(frame, network))[1]),
    ):
        PANEL.quantity(f"{name}-{network.name}", groups, note=note)(partial(value, network))


# ---------------------------------------------------------------- statistics


def _misfits(arrived: Sequence[Point]) -> Misfits:
    """Misfits of the joint law, whose constants were fixed before; they scatter between points about alike."""
    off, _ = log_misfits(arrived)
    if (seeds := off.shape[1]) < 2:
        raise Missing("lacks a second seed, by which points are told from scatter")
    own = off.var(1, ddof=1) / seeds
    return Misfits(off.mean(1), np.sqrt(np.maximum(own, own.mean())), (seeds - 1) * len(off), seeds)


def log_misfits(arrived: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
    """log(seen / foretold) [P, S] by the joint law, and by the printed law scaled to every rate."""
    if not arrived:
        raise Missing("lacks a combination that arrived as foretold")
    logs = np.log(np.array([p.updates.seen for p in arrived], dtype=float))  # [P, S]
    ours = [math.log(p.foretold.law.predict(p.updates.batch, p.rate)) for p in arrived]
    first = [math.log(p.foretold.first_order(p.updates.batch, p.rate)) for p in arrived]
    return logs - np.array(ours)[:, None], logs - np.array(first)[:, None]


def rms(misfits: np.ndarray) -> float:
    """Root mean square, over points, of the mean misfit over seeds; ``misfits`` is [P, S]."""
    return float(np.sqrt((misfits.mean(1) ** 2).mean()))


def jackknife(misfits: np.ndarray, statistic: Callable[[Any], float]) -> Interval:
    """A statistic of [..., P, S] with Student's t on the jackknife that leaves out one seed at a time."""
    seeds = misfits.shape[-1]
    whole = statistic(misfits)
    if seeds < 2:
        return Interval(whole, -math.inf, math.inf, seeds)
    parts = np.array([statistic(np.delete(misfits, j, -1)) for j in range(seeds)])
    half = quantile(seeds - 1, LEVEL) * math.sqrt(jackknife_variance(parts))
    return Interval(whole, whole - half, whole + half, seeds, seeds - 1)


def better(ours: np.ndarray, first: np.ndarray) -> Interval:
    """The printed law's root mean square misfit less the joint law's; above 0 the joint law foretells better."""
    return jackknife(np.stack([ours, first]), lambda both: rms(both[1]) - rms(both[0]))


def share_foretold(found: Sequence[Point]) -> tuple[Interval, str]:
    """The share of combinations near the pole whose arrival, or failure to arrive, was foretold; mean over seeds.

    Combinations count whose load lies above NEAR and outside ARRIVES to FAILS. The note names those foretold wrongly.
    """
    near = [p for p in found if p.load > NEAR and p.decided]
    if not near:
        raise Missing("lacks a combination near the pole")
    right = np.array([[(n is not None) == p.arrives for n in p.updates.seen] for p in near])  # [P, S]
    share = jackknife(right, lambda part: float(part.mean()))
    wrong = [
        f"loss {p.threshold:g} rate {p.rate:g} M = {p.updates.batch} ({p.load:.2f})"
        for p, each in zip(near, right, strict=True)
        if not each.all()
    ]
    note = f"{len(near)} combinations, {sum(p.arrives for p in near)} foretold to arrive"
    held = Interval(share.mean, max(share.low, 0.0), min(share.high, 1.0), share.n, share.freedom)
    return held, note + (f"; otherwise: {', '.join(wrong)}" if wrong else "")


# ---------------------------------------------------------------- drawing


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """A row per network, threshold, rate, batch size and run; ``updates`` is NaN beyond the limit.

    ``source`` is "fresh", or "fitted to" for the searches from which the constants come.
    """
    rows = list[tuple[Any, ...]]()
    for network in joint.NETWORKS:
        seen = [("fresh", p.threshold, p.rate, p.updates, p.load) for p in points(frame, network, whole=False)]
        for loss, known in joint.predictions()[network.name].items():
            with contextlib.suppress(Missing):
                for rate, curve in joint.known_counts(frame, network, loss).items():
                    seen += [("fitted to", loss, rate, u, known.law.load(u.batch, rate)) for u in curve]
        rows += [
            (network.name, source, loss, rate, updates.batch, run, math.nan if n is None else n, load)
            for source, loss, rate, updates, load in seen
            for run, n in enumerate(updates.seen)
        ]
    columns = ["network", "source", "threshold", "rate", "batch", "run", "updates", "load"]
    return pd.DataFrame(rows, columns=columns)


class Seen(NamedTuple):
    """A combination as drawn: rate / M, updates x rate (NaN where a seed did not arrive), and whether it is new."""

    ratio: float
    way: float
    new: bool


def combinations(rows: pd.DataFrame) -> list[Seen]:
    """Those of rows of the table; the curves that the constants come from first, so that fresh runs lie on them."""
    found = []
    for (source, rate, batch), part in rows.groupby(["source", "rate", "batch"], sort=False):
        middle = float(np.exp(np.log(part["updates"].to_numpy()).mean()))  # NaN where a seed did not arrive
        found.append(Seen(rate / batch, rate * middle, source == "fresh"))
    return sorted(found, key=lambda each: each.new)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """One panel per network: updates times learning rate against learning rate over batch size; the curve foretold
    for each loss with its pole, the runs that arrived and, hollow at the top, those that did not.
    """
    if not PANEL.runs(frame.profile):
        raise Missing(f"no runs of the collapse at {frame.profile}")
    columns, rows = 3, table(frame)
    for place, network in enumerate(joint.NETWORKS, 1):
        axes = figure.add_subplot(-(-len(joint.NETWORKS) // columns), columns, place)
        draw_network(axes, network, rows[rows["network"] == network.name])
        axes.set_title(network.title + _lacking(frame, network), fontsize="small")
        if place % columns == 1:
            axes.set_ylabel("updates \u00d7 rate to the loss")
        axes.set_xlabel("rate / M (1 / examples)")
    _key(figure)


def draw_network(axes: Axes, network: Network, rows: pd.DataFrame) -> None:
    """One panel, from the rows of the table that are the network's."""
    foretold = joint.predictions()[network.name]
    seen = {loss: combinations(rows[rows["threshold"] == loss]) for loss in network.thresholds}
    everything = [each for found in seen.values() for each in found]
    ratios = [each.ratio for each in everything] or [rate / m for rate in network.rates for m in network.sizes]
    low = min(ratios)
    ways = [each.way for each in everything if not math.isnan(each.way)]
    top = HEADROOM * max([*ways, *(p.law.way for p in foretold.values())])
    for order, (loss, found) in enumerate(seen.items()):
        colour, law = PALETTE[order], foretold[loss].law
        pole = 1 / law.noise  # up to which the curve goes; a dotted line marks it
        ratio = np.concatenate([np.geomspace(low, pole / 2, 50), pole * (1 - np.geomspace(0.5, 1 - SHOWN, 50))])
        foreseen = np.array([law.predict(1, r) * r for r in ratio])
        inside = foreseen < top
        axes.plot(ratio[inside], foreseen[inside], color=colour, linewidth=1, label=f"loss {loss:.3g}")
        axes.axvline(pole, color=colour, linewidth=0.8, linestyle=":")
        _draw_seen(axes, found, top * 1.25**order, colour, MARKERS[order])
    axes.set(xscale="log", yscale="log")
    plain_decades(axes)
    axes.legend(fontsize="small", loc="upper left")


def _lacking(frame: Frame, network: Network) -> str:
    """A line that says how many of the fresh runs are stored; nothing where all are."""
    runs = frame.runs[frame.runs["group"].str.startswith(f"{network.name}/")]
    stored = int((runs["run"] != "").sum())
    if stored == len(runs):
        return ""
    return f"\nfresh runs: {f'{stored} of {len(runs)}, shown where all seeds are' if stored else 'not run'}"


def _draw_seen(axes: Axes, found: Sequence[Seen], top: float, colour: str, marker: str) -> None:
    """Filled where every seed arrived, hollow at the top where one did not; pale where the constants come from."""
    for each in found:
        lost = math.isnan(each.way)
        axes.plot(
            each.ratio, top if lost else each.way, linestyle="none", marker=marker, markersize=5 if each.new else 4,
            color=colour, alpha=1.0 if each.new else 0.35, markerfacecolor="none" if lost else colour,
            markeredgewidth=0.9 if lost else 0,
        )  # fmt: skip


def _key(figure: Figure) -> None:
    """The marks, once above all panels."""
    from matplotlib.lines import Line2D

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
