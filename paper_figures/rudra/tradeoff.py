"""Figs. 6 and 7: error against time under hardsync (6), and under softsync with n = lambda (7a) and with n = 1 (7b).

Under hardsync more learners save time and cost accuracy, and smaller mini-batches win it back. Gradients of softsync
with n = lambda are the stalest, those with n = 1 the least stale.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log
from typing import Any

from paper_figures.rudra import errors, plans, times
from paper_figures.rudra.drawing import about, logarithmic
from paper_figures.rudra.errors import SHORT, WHOLE, trained
from paper_figures.rudra.settings import BATCHES, EPOCHS, LEARNERS, MANY, grid
from suite.claims.intervals import Interval, log_interval, mean_interval
from suite.papers.figure import Artifact, Axes, Figure, Frame, Groups, Missing, pd
from suite.report.style import GRID, INK, LINES, MARKERS, PALETTE, named_ticks


def panel(name: str, protocol: str, more: Callable[[str], Groups]) -> Artifact:
    """The figure of a protocol's grid; ``more`` are the runs that it has besides."""
    grid_runs = lambda profile: {**times.cifar(), **plans.training_groups(profile, grid(protocol)), **more(profile)}
    alt = "Left: test error against training time, printed and ours; right: predicted time against learners."
    title = f"Error against time under {protocol}"
    return Artifact(f"rudra/{name}", title, grid_runs, alt=alt, size=(9.5, 5.0), beside=errors.own_seeds)


def beside_the_stalest(profile: str) -> Groups:
    return {
        **plans.training_groups(profile, [(0, 128, 30)]),
        "mu 4": tuple(plans.messages(k, 4, k, 30_000) for k in MANY),
        "alike": tuple(plans.clock(k, k, gradients=30_000) for k in MANY),
    }


def beside_the_least_stale(profile: str) -> Groups:
    return {
        "zero jitter": tuple(plans.clock(1, k, jitter=0.0, gradients=30_000) for k in LEARNERS),
        "pulls": (plans.messages(1, 4), plans.messages(30, 4)),
        **plans.training_groups(profile, [(30, 4, 30), (30, 128, 30), (2, 4, 2), (2, 128, 2)]),
    }


FIG6 = panel("fig6", "hardsync", lambda profile: {"throughput": (plans.THROUGHPUT,)})
FIG7A = panel("fig7a", "lambda-softsync", beside_the_stalest)
FIG7B = panel("fig7b", "1-softsync", beside_the_least_stale)

# ---------------------------------------------------------------- Fig. 6

FIG6.quantities["hardsync-error"] = errors.mean((0, 128, 30))
FIG6.quantities["hardsync-error-of-ten"] = errors.mean((0, 128, 10))
FIG6.quantities["restore-by-small-mu"] = errors.steps((0, 4, 30), (0, 128, 30))
FIG6.quantities["small-mu-lower-error"] = errors.mean((0, 4, 1))
FIG6.quantities["error-rises-with-lambda"] = errors.steps(*((0, 128, learners) for learners in LEARNERS))


@FIG6.quantity("small-mu-longer", ["throughput"])
def longer(frame: Frame) -> Interval:
    """Seconds of an example at mu = 4 over those at mu = 128, pair by pair of measurements that alternate."""
    return log_interval(frame.one("throughput")["training_ratios"])


@FIG6.quantity("gemm-throughput", ["throughput"])
def faster(frame: Frame) -> Interval:
    """Logarithm of the rate of matrix products at mu = 128 over that at mu = 4, pair by pair."""
    return mean_interval([log(ratio) for ratio in frame.one("throughput")["product_ratios"]])


# ---------------------------------------------------------------- Fig. 7

STALEST = (30, 128, 30)
FIG7A.quantities["degradation-larger"] = errors.steps((0, 128, 30), STALEST)
FIG7A.quantities["mitigated-by-small-mu"] = errors.steps((30, 4, 30), STALEST)
FIG7A.quantities["mu4-immune"] = errors.worst(*((k, 4, k) for k in LEARNERS))
CORNERS = [(mu, k) for mu in (4, 128) for k in (2, 30)]
FIG7B.quantities["like-lambda-softsync"] = errors.differences(*(((k, mu, k), (1, mu, k)) for mu, k in CORNERS))


@FIG7B.quantity("staleness-one", ["zero jitter"])
def mean_staleness(frame: Frame) -> list[float]:
    """Average staleness of 1-softsync for each number of learners, which take equally long."""
    return [float(run["mean"]) for run in frame.results("zero jitter")]


# ---------------------------------------------------------------- drawing


def table(protocol: str, frame: Frame) -> pd.DataFrame:
    """A protocol's grid and the baseline: printed time and error, predicted time, and errors of stored runs.

    Columns: row, n, mu, learners, source ("printed", HELD_OUT, FITTED, WHOLE, SHORT), seconds, error in %, seed,
    epochs. Predicted seconds are those of 140 epochs, or of a shortened run's own.
    """
    predicted = times.predicted(frame)
    found: list[dict[str, Any]] = []
    for row in dict.fromkeys([plans.BASELINE, *grid(protocol)]):
        if row in plans.PRINTED:
            printed = {"source": "printed", "seconds": plans.printed_seconds(row), "error": plans.printed_error(row)}
            found.append(about(row) | printed)
        found.append(about(row) | {"source": times.source(row in plans.CALIBRATED), "seconds": predicted[row]})
        for run in trained(frame, row):
            seconds = predicted[row] * run["epochs"] / EPOCHS
            named = {name: run[name] for name in ("source", "seed", "epochs")}
            found.append(about(row) | named | {"seconds": seconds, "error": run["value"]})
    return pd.DataFrame(found)


def draw(protocol: str, frame: Frame, figure: Figure) -> None:
    """The paper's panel from what it prints and what we trained, and beside it the times that the model predicts.

    Raises Missing where the profile trains, but none of its runs is stored.
    """
    rows = table(protocol, frame)
    planned = frame.groups.keys() & {plans.label(row) for row in grid(protocol)}
    ours = rows[rows["source"].isin([WHOLE, SHORT])]
    if planned and ours.empty:
        raise Missing(f"none of the {len(planned)} configurations is trained at profile {frame.profile}")
    short = ours[ours["source"] == SHORT]["row"]
    panels: list[Any] = [["errors", "times"], ["errors", "short"]] if len(short) else [["errors", "times"]]
    axes = figure.subplot_mosaic(panels, width_ratios=[1.5, 1])
    draw_errors(axes["errors"], rows[rows["source"].isin(["printed", WHOLE])])
    draw_times(axes["times"], rows)
    if len(short):
        below = axes["short"]
        for row, colour, line in zip(dict.fromkeys(short), PALETTE, LINES, strict=False):
            for _, curve in frame.table("evaluations", row).groupby("seed"):
                below.plot(curve["epoch"], 100 * curve["test_error"], color=colour, linestyle=line, label=row)
        below.set(xlabel="epoch", ylabel="test error (%)", title=f"runs far shorter than {EPOCHS} epochs")
        below.legend(fontsize=7)
    key(figure, whole=bool((ours["source"] == WHOLE).any()))


def looks(learners: int) -> dict[str, Any]:
    """Colour and marker of a number of learners, the same in both panels."""
    place = LEARNERS.index(learners)
    return {"color": PALETTE[place], "marker": MARKERS[place]}


def key(figure: Figure, *, whole: bool) -> None:
    """One legend above both panels."""
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], label=f"$\\lambda$ = {k}", linewidth=1.2, **looks(k)) for k in LEARNERS]
    grey: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": GRID}
    ours = "ours, mean of the seeds (dots), at the predicted time" if whole else "ours: none of 140 epochs"
    marks += [
        Line2D([], [], label="printed", markerfacecolor="none", markersize=7, **grey),
        Line2D([], [], label=ours, **grey),
        Line2D([], [], label=times.FITTED, linestyle="none", marker="x", color=INK, markersize=7),
        Line2D([], [], label="printed baseline (0, 128, 1)", linestyle="--", color=GRID, linewidth=1),
    ]
    figure.legend(handles=marks, ncols=5, fontsize=8, loc="outside upper left")


def draw_errors(axes: Axes, table: pd.DataFrame) -> None:
    """Error against time; contours of equal lambda in colour, with mu at their ends, and of equal mu dotted."""
    printed, ours = table[table["source"] == "printed"], table[table["source"] == WHOLE]
    for _, contour in printed.groupby("mu"):
        line = contour.sort_values("learners")
        axes.plot(line["seconds"], line["error"], color=GRID, linewidth=0.8, linestyle=":", zorder=1)
    for learners, points in printed.groupby("learners"):
        line = points.sort_values("mu")
        style = {"linewidth": 1.2, "linestyle": "-", "markerfacecolor": "none", "markersize": 7, **looks(learners)}
        axes.plot(line["seconds"], line["error"], label=f"printed, $\\lambda$ = {learners}", **style)
    means = ours.groupby(["source", "learners", "mu"], as_index=False)[["seconds", "error"]].mean()
    for learners, line in means.groupby("learners"):  # in the order of mu
        style = {"linewidth": 1.2, "linestyle": "--", "markersize": 6, "zorder": 3, **looks(learners)}
        axes.plot(line["seconds"], line["error"], **style)
        seeds = ours[ours["learners"] == learners]
        axes.plot(seeds["seconds"], seeds["error"], ".", color=looks(learners)["color"], markersize=3)
    for learners, points in pd.concat([printed, means]).groupby("learners"):
        middles = points.groupby("source")["seconds"].mean()
        for source, line in points.groupby("source"):
            left = middles[source] < middles.max() or (source == "printed" and len(middles) == 1)
            name_ends(axes, line, looks(learners)["color"], left=left)
    axes.axhline(plans.printed_error(plans.BASELINE), color=GRID, linewidth=1, linestyle="--", zorder=1)
    axes.margins(x=0.1, y=0.08)
    axes.set_title("numbers: the least and the largest mini-batch $\\mu$ of a line", loc="left", fontsize="small")
    axes.set(xlabel="training time of 140 epochs (s)", ylabel="test error (%)")
    logarithmic(axes)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 17), high)


def name_ends(axes: Axes, line: pd.DataFrame, colour: str, *, left: bool) -> None:
    """The least mini-batch below one end of a line, and beside the other, where there is one, the largest."""
    line, (x, side) = line.sort_values("mu"), (-6, "right") if left else (6, "left")
    ends = [(line.iloc[0], -9), (line.iloc[-1], 3)][: len(line)]
    for end, y in ends:
        at = end["seconds"], end["error"]
        axes.annotate(f"{end['mu']}", at, (x, y), textcoords="offset points", ha=side, color=colour, size=8)


def draw_times(axes: Axes, table: pd.DataFrame) -> None:
    """Predicted time of the whole grid against the mini-batch, a line for each number of learners."""
    ours, printed = table[table["source"].isin([times.HELD_OUT, times.FITTED])], table[table["source"] == "printed"]
    for learners, points in ours.groupby("learners"):
        line = points.sort_values("mu")
        axes.plot(line["mu"], line["seconds"], linewidth=1.2, linestyle="-", markersize=3, **looks(learners))
    for learners, points in printed.groupby("learners"):
        hollow = {"linestyle": "none", "markerfacecolor": "none", "markersize": 7, "zorder": 3, **looks(learners)}
        axes.plot(points["mu"], points["seconds"], **hollow)
    fitted = ours[ours["source"] == times.FITTED]
    axes.plot(fitted["mu"], fitted["seconds"], "x", color=INK, markersize=7, zorder=4)
    axes.set(xlabel="mini-batch $\\mu$ (images)", ylabel="time (s)", title="not in the paper: the cost model")
    named_ticks(axes, BATCHES, 2)
    logarithmic(axes, "y")


for figure, protocol in ((FIG6, "hardsync"), (FIG7A, "lambda-softsync"), (FIG7B, "1-softsync")):
    figure.table(partial(table, protocol))
    figure.drawing(partial(draw, protocol))
