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
    axes = figure.subplot_mosaic(panels, width_ratios=[1.25, 1])
    draw_errors(axes["errors"], table[table["source"].isin(["printed", WHOLE])])
    draw_times(axes["times"], table)
    if len(short):
        draw_short(axes["short"], evidence, [(n, mu, k) for n, mu, k in short[["n", "mu", "learners"]].to_numpy()])


def colours() -> dict[int, str]:
    """Colours of the numbers of learners."""
    from suite.report.style import ramp

    return dict(zip(LEARNERS, ramp(len(LEARNERS)), strict=True))


def draw_errors(axes: Axes, table: pd.DataFrame) -> None:
    """Error against time; contours of equal lambda in colour and of equal mu dotted, mu beside the points."""
    import seaborn as sns

    from suite.report.style import GRID

    printed, ours = table[table["source"] == "printed"], table[table["source"] == WHOLE]
    palette, seen = colours(), sorted(table["learners"].unique())
    for _, contour in printed.groupby("mu"):
        line = contour.sort_values("learners")
        axes.plot(line["seconds"], line["error"], color=GRID, linewidth=0.8, linestyle=":", zorder=1)
    for learners in seen:
        line = printed[printed["learners"] == learners].sort_values("mu")
        axes.plot(
            line["seconds"],
            line["error"],
            color=palette[learners],
            linewidth=1.2,
            linestyle="-",
            marker="o",
            markerfacecolor="none",
            markersize=7,
            label=f"$\\lambda$ = {learners}",
        )
    for _, point in printed.iterrows():
        axes.annotate(
            f"{point['mu']}", (point["seconds"], point["error"]), (5, 4), textcoords="offset points", size=7
        )
    if len(ours):
        sns.scatterplot(
            ours, x="seconds", y="error", hue="learners", palette=palette, s=40, ax=axes, legend=False, zorder=3
        )
    axes.axhline(printed_error(BASELINE), color=GRID, linewidth=1, linestyle="--")
    axes.annotate("(0, 128, 1)", (1, printed_error(BASELINE)), (-2, -9), xycoords=("axes fraction", "data"),
                  textcoords="offset points", ha="right", size=7)  # fmt: skip
    axes.plot([], [], "o", color=GRID, markerfacecolor="none", label="printed ($\\mu$ beside)")
    axes.plot(
        [], [], "o", color=GRID, label="ours, at the predicted time" if len(ours) else "ours: none of 140 epochs"
    )
    axes.set(xlabel="training time of 140 epochs (s)", ylabel="test error (%)")
    logarithmic(axes)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 17), max(high, 31))  # one scale for Figs. 6 and 7 as far as points allow
    axes.legend(loc="upper right")


def draw_times(axes: Axes, table: pd.DataFrame) -> None:
    """Predicted time of the whole grid against the number of learners, printed times in open circles."""
    import seaborn as sns

    from suite.report.style import GRID, INK, ramp

    palette = dict(zip(BATCHES, ramp(len(BATCHES)), strict=True))
    ours = table[table["source"].isin([HELD_OUT, FITTED])]
    sns.lineplot(ours, x="learners", y="seconds", hue="mu", palette=palette, linewidth=1.2, ax=axes, errorbar=None)
    fitted, printed = ours[ours["source"] == FITTED], table[table["source"] == "printed"]
    axes.scatter(fitted["learners"], fitted["seconds"], marker="x", color=GRID, s=30, zorder=3, label=FITTED)
    axes.scatter(printed["learners"], printed["seconds"], s=36, zorder=3, facecolors="none", edgecolors=INK,
                 label="printed")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="learners", ylabel="predicted time (s)")
    axes.set_xticks(LEARNERS, [str(k) for k in LEARNERS])
    axes.minorticks_off()
    handles, names = axes.get_legend_handles_labels()
    titled = [f"$\\mu$ = {name}" if name.isdigit() else name for name in names]
    axes.legend(handles, titled, loc="lower left", fontsize=7)


def draw_short(axes: Axes, evidence: Evidence, rows: list[Configuration]) -> None:
    """Error against epochs of runs that end long before 140 of them."""
    from suite.report.style import LINES, PALETTE

    for row, colour, line in zip(dict.fromkeys(rows), PALETTE, LINES, strict=False):
        for run in runs_of(evidence, label(row)):
            curve = run.curve("evaluations")
            axes.plot(curve["epoch"], 100 * curve["test_error"], color=colour, linestyle=line, label=label(row))
    axes.set(xlabel="epoch", ylabel="test error (%)", title=f"shortened runs, which end long before {EPOCHS} epochs")
    axes.legend(fontsize=7)
