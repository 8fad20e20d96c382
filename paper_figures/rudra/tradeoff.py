"""Figs. 6 and 7: test error against training time, by numbers of learners and sizes of mini-batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paper_figures.rudra.groups import label
from paper_figures.rudra.readings import CifarTimes, runs_of
from paper_figures.rudra.rows import (
    FITTED,
    HELD_OUT,
    PRINTED,
    SHORT,
    WHOLE,
    logarithmic,
    printed_error,
    printed_seconds,
    trained,
)
from paper_figures.rudra.settings import BATCHES, EPOCHS, LEARNERS, Configuration, grid
from paper_figures.rudra.simulations import BASELINE, CALIBRATED
from suite.papers.artifact import Evidence, Missing
from suite.report.style import INK

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def frame(protocol: str, evidence: Evidence) -> pd.DataFrame:
    """A protocol's grid and the baseline: printed time and error, predicted time, and errors of stored runs.

    Columns: row, n, mu, learners, source ("printed", HELD_OUT, FITTED, WHOLE, SHORT), seconds, error in %, seed,
    epochs. Predicted seconds are those of 140 epochs, or of a shortened run's own.
    """
    import pandas as pd

    times = CifarTimes(evidence)
    found: list[dict[str, Any]] = []
    for row in dict.fromkeys([BASELINE, *grid(protocol)]):
        base = {"row": label(row), **dict(zip(("n", "mu", "learners"), row, strict=True))}
        if row in PRINTED or row == BASELINE:
            found.append(base | {"source": "printed", "seconds": printed_seconds(row), "error": printed_error(row)})
        found.append(base | {"source": FITTED if row in CALIBRATED else HELD_OUT, "seconds": times[row]})
        for run in trained(evidence, label(row)):
            seconds = times[row] * run["epochs"] / EPOCHS
            told = {name: run[name] for name in ("source", "seed", "epochs")}
            found.append(base | told | {"seconds": seconds, "error": run["value"]})
    return pd.DataFrame(found)


def draw(protocol: str, evidence: Evidence, figure: Figure) -> None:
    """The paper's panel from what it prints and what we trained, and beside it the times that the model predicts.

    Raises Missing where the profile trains, but none of its runs is stored.
    """
    table = frame(protocol, evidence)
    planned = [row for row in grid(protocol) if label(row) in evidence.groups]
    if planned and not table["source"].isin([WHOLE, SHORT]).any():
        raise Missing(f"none of the {len(planned)} configurations is trained at profile {evidence.profile}")
    short = table[table["source"] == SHORT]
    panels: list[Any] = [["errors", "times"], ["errors", "short"]] if len(short) else [["errors", "times"]]
    axes = figure.subplot_mosaic(panels, width_ratios=[1.5, 1])
    draw_errors(axes["errors"], table[table["source"].isin(["printed", WHOLE])])
    draw_times(axes["times"], table)
    if len(short):
        draw_short(axes["short"], evidence, [(n, mu, k) for n, mu, k in short[["n", "mu", "learners"]].to_numpy()])
    key(figure, whole=bool((table["source"] == WHOLE).any()))


def looks(learners: int) -> dict[str, Any]:
    """Colour and marker of a number of learners, the same in both panels."""
    from suite.report.style import MARKERS, PALETTE

    place = LEARNERS.index(learners)
    return {"color": PALETTE[place], "marker": MARKERS[place]}


def key(figure: Figure, *, whole: bool) -> None:
    """One legend above both panels."""
    from matplotlib.lines import Line2D

    from suite.report.style import GRID

    marks = [Line2D([], [], label=f"$\\lambda$ = {k}", linewidth=1.2, **looks(k)) for k in LEARNERS]
    hollow: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": GRID}
    marks += [
        Line2D([], [], label="printed ($\\mu$ at its left)", markerfacecolor="none", markersize=7, **hollow),
        Line2D(
            [],
            [],
            label="ours, at the predicted time ($\\mu$ at its right)" if whole else "ours: none of 140 epochs",
            **hollow,
        ),
        Line2D([], [], label="calibrated on", linestyle="none", marker="x", color=INK, markersize=7),
    ]
    figure.legend(handles=marks, ncols=5, fontsize=8, loc="outside upper left")


def draw_errors(axes: Axes, table: pd.DataFrame) -> None:
    """Error against time; contours of equal lambda in colour and of equal mu dotted, mu beside every point."""
    from suite.report.style import GRID

    printed, ours = table[table["source"] == "printed"], table[table["source"] == WHOLE]
    for _, contour in printed.groupby("mu"):
        line = contour.sort_values("learners")
        axes.plot(line["seconds"], line["error"], color=GRID, linewidth=0.8, linestyle=":", zorder=1)
    for learners, points in printed.groupby("learners"):
        line = points.sort_values("mu")
        style = {"linewidth": 1.2, "linestyle": "-", "markerfacecolor": "none", "markersize": 7, **looks(learners)}
        axes.plot(line["seconds"], line["error"], label=f"printed, $\\lambda$ = {learners}", **style)
    for learners, points in ours.groupby("learners"):
        axes.plot(points["seconds"], points["error"], linestyle="none", markersize=6, zorder=3, **looks(learners))
    for source, left, side in ((printed, -6, "right"), (ours, 6, "left")):
        for _, point in source.iterrows():
            at = (point["seconds"], point["error"])
            axes.annotate(f"{point['mu']}", at, (left, 3), textcoords="offset points", ha=side, size=8)
    axes.axhline(printed_error(BASELINE), color=GRID, linewidth=1, linestyle="--", zorder=1)
    said, at = "printed baseline (0, 128, 1)", (0.5, printed_error(BASELINE))
    across = ("axes fraction", "data")
    axes.annotate(said, at, (0, -10), xycoords=across, textcoords="offset points", ha="center", size=8)
    axes.margins(x=0.1, y=0.08)
    axes.set(xlabel="training time of 140 epochs (s)", ylabel="test error (%)")
    logarithmic(axes)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 17), high)


def draw_times(axes: Axes, table: pd.DataFrame) -> None:
    """Predicted time of the whole grid against the mini-batch, a line for each number of learners."""
    ours = table[table["source"].isin([HELD_OUT, FITTED])]
    for learners, points in ours.groupby("learners"):
        line = points.sort_values("mu")
        axes.plot(line["mu"], line["seconds"], linewidth=1.2, linestyle="-", markersize=3, **looks(learners))
    for learners, points in table[table["source"] == "printed"].groupby("learners"):
        open_ = {"linestyle": "none", "markerfacecolor": "none", "markersize": 7, **looks(learners)}
        axes.plot(points["mu"], points["seconds"], zorder=3, **open_)
    fitted = ours[ours["source"] == FITTED]
    axes.plot(fitted["mu"], fitted["seconds"], "x", color=INK, markersize=7, zorder=4)
    axes.set(
        xlabel="mini-batch $\\mu$ (images)", ylabel="predicted time (s)", title="not in the paper: the cost model"
    )
    axes.set_xscale("log", base=2)
    axes.set_xticks(BATCHES, [str(mu) for mu in BATCHES])
    axes.minorticks_off()
    logarithmic(axes, "y")


def draw_short(axes: Axes, evidence: Evidence, rows: list[Configuration]) -> None:
    """Error against epochs of runs that end long before 140 of them."""
    from suite.report.style import LINES, PALETTE

    for row, colour, line in zip(dict.fromkeys(rows), PALETTE, LINES, strict=False):
        for run in runs_of(evidence, label(row)):
            curve = run.curve("evaluations")
            axes.plot(curve["epoch"], 100 * curve["test_error"], color=colour, linestyle=line, label=label(row))
    axes.set(xlabel="epoch", ylabel="test error (%)", title=f"shortened runs, which end long before {EPOCHS} epochs")
    axes.legend(fontsize=7)
