"""Tables 2 to 4 and Figs. 6 and 7 as tables and drawings: what is printed in open marks, ours in filled ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from paper_figures.rudra.errors import SHORT, WHOLE, own_seeds, trained
from paper_figures.rudra.plans import BASELINE, CALIBRATED, PRINTED, label, printed_error, printed_seconds
from paper_figures.rudra.settings import BATCHES, EPOCHS, LEARNERS, Configuration, grid
from paper_figures.rudra.times import FITTED, HELD_OUT, LEFT_OUT, predicted, source_of, told
from suite.papers.figure import Artifact, Axes, Figure, Frame, Groups, Missing, pd, sns
from suite.report.style import GRID, INK, LINES, MARKERS, PALETTE, named_ticks, plain_numbers


def about(row: Configuration) -> dict[str, Any]:
    """A configuration as columns of a table."""
    return {"row": label(row), **dict(zip(("n", "mu", "learners"), row, strict=True))}


def cifar_rows(rows: Iterable[Configuration], frame: Frame) -> pd.DataFrame:
    """Errors in % and seconds of configurations, a row per value.

    Columns: row (the paper's label), n, mu, learners, quantity ("test error" or "time"), source ("printed", WHOLE,
    SHORT, HELD_OUT, FITTED, LEFT_OUT), seed, epochs, value, low, high. Errors of ours stand where runs are stored;
    ``low`` and ``high`` are the 95% interval of their claim, that of the mean over a row's seeds.
    """
    found: list[dict[str, Any]] = []
    for row in rows:
        printed = {"source": "printed", "value": printed_error(row)}
        seconds = told(frame, row, printed_seconds(row), row in CALIBRATED)
        for quantity, values in (("test error", [printed, *trained(frame, row)]), ("time", seconds)):
            found += [about(row) | {"quantity": quantity} | value for value in values]
    return pd.DataFrame(found)


def draw_cifar(table: pd.DataFrame, figure: Figure) -> None:
    """Errors on the left, times on the right, a line of the table each."""
    left, right = figure.subplots(1, 2, sharey=True)
    names = list(dict.fromkeys(table["row"]))
    dots(left, table[table["quantity"] == "test error"], names)
    left.set(xlabel="test error (%), with 95% intervals", ylabel="(n, mu, lambda)")
    dots(right, table[table["quantity"] == "time"], names)
    right.set(xlabel="time of 140 epochs (s)")
    logarithmic(right)
    for axes in (left, right):
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def evaluations(frame: Frame, named: Mapping[str, str], by: str) -> pd.DataFrame:
    """Test errors in % at all evaluations of stored groups, each ``named``. Columns: seed, epoch, ``by``, error.

    Raises Missing where none is stored.
    """
    stored = list(filter(frame.results, named))
    if not stored:
        raise Missing(f"nothing is trained at profile {frame.profile}")
    curve = frame.table("evaluations", *stored)
    return curve[["seed", "epoch"]].assign(**{by: curve["group"].map(named)}, error=100 * curve["test_error"])


def draw_evaluations(axes: Axes, rows: pd.DataFrame, by: str) -> None:
    """``evaluations`` over epochs, a line a seed, told apart ``by`` a column; before training all are at chance."""
    told: dict[str, Any] = {"hue": by, "style": by, "units": "seed", "estimator": None}
    sns.lineplot(rows[rows["epoch"] > 0], x="epoch", y="error", ax=axes, **told)


def logarithmic(axes: Axes, which: str = "x") -> None:
    """A logarithmic axis in plain numbers."""
    axes.set(**{f"{which}scale": "log"})
    plain_numbers(axes.xaxis if which == "x" else axes.yaxis)


def dots(axes: Axes, table: pd.DataFrame, names: list[str]) -> None:
    """Values by source on a line per name: what is printed in open circles, ours in filled marks."""
    looks: dict[str, dict[str, Any]] = {
        "printed": {"marker": "o", "facecolors": "none", "edgecolors": INK, "s": 42},
        HELD_OUT: {"marker": "o", "color": PALETTE[0], "s": 20},
        FITTED: {"marker": "x", "color": GRID, "s": 26},
        LEFT_OUT: {"marker": "D", "color": PALETTE[1], "s": 18},
        WHOLE: {"marker": "o", "color": PALETTE[0], "s": 20},
        SHORT: {"marker": "v", "color": PALETTE[1], "s": 22},
    }
    for source, look in looks.items():
        part = table[table["source"] == source]
        if part.empty:
            continue
        at = [names.index(name) for name in part["row"]]
        axes.scatter(part["value"], at, label=source, zorder=3, linewidths=1.2, **look)
        if source in (LEFT_OUT, WHOLE):
            axes.hlines(at, part["low"], part["high"], color=look["color"], linewidth=1.2)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)


# ---------------------------------------------------------------- error against time, Figs. 6 and 7


def tradeoff(protocol: str, frame: Frame) -> pd.DataFrame:
    """A protocol's grid and the baseline: printed time and error, predicted time, and errors of stored runs.

    Columns: row, n, mu, learners, source ("printed", HELD_OUT, FITTED, WHOLE, SHORT), seconds, error in %, seed,
    epochs. Predicted seconds are those of 140 epochs, or of a shortened run's own.
    """
    times = predicted(frame)
    found: list[dict[str, Any]] = []
    for row in dict.fromkeys([BASELINE, *grid(protocol)]):
        if row in PRINTED:
            printed = {"source": "printed", "seconds": printed_seconds(row), "error": printed_error(row)}
            found.append(about(row) | printed)
        found.append(about(row) | {"source": source_of(row in CALIBRATED), "seconds": times[row]})
        for run in trained(frame, row):
            seconds = times[row] * run["epochs"] / EPOCHS
            named = {name: run[name] for name in ("source", "seed", "epochs")}
            found.append(about(row) | named | {"seconds": seconds, "error": run["value"]})
    return pd.DataFrame(found)


def panel(name: str, protocol: str, runs: Callable[[str], Groups]) -> Artifact:
    """The figure of a protocol's grid with its table; each of Figs. 6 and 7 has it drawn by ``draw_tradeoff``."""
    alt = "Left: test error against training time, printed and ours; right: predicted time against learners."
    made = Artifact(f"rudra/{name}", f"Error against time under {protocol}", runs, alt=alt, size=(9.5, 5.0))
    made.beside, made.frame = own_seeds, partial(tradeoff, protocol)
    return made


def draw_tradeoff(protocol: str, frame: Frame, figure: Figure) -> None:
    """The paper's panel from what it prints and what we trained, and beside it the times that the model predicts.

    Raises Missing where the profile trains, but none of its runs is stored.
    """
    table = tradeoff(protocol, frame)
    planned = frame.groups.keys() & {label(row) for row in grid(protocol)}
    ours = table[table["source"].isin([WHOLE, SHORT])]
    if planned and ours.empty:
        raise Missing(f"none of the {len(planned)} configurations is trained at profile {frame.profile}")
    short = ours[ours["source"] == SHORT]["row"]
    panels: list[Any] = [["errors", "times"], ["errors", "short"]] if len(short) else [["errors", "times"]]
    axes = figure.subplot_mosaic(panels, width_ratios=[1.5, 1])
    draw_errors(axes["errors"], table[table["source"].isin(["printed", WHOLE])])
    draw_times(axes["times"], table)
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
        Line2D([], [], label=FITTED, linestyle="none", marker="x", color=INK, markersize=7),
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
    axes.axhline(printed_error(BASELINE), color=GRID, linewidth=1, linestyle="--", zorder=1)
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
    ours, printed = table[table["source"].isin([HELD_OUT, FITTED])], table[table["source"] == "printed"]
    for learners, points in ours.groupby("learners"):
        line = points.sort_values("mu")
        axes.plot(line["mu"], line["seconds"], linewidth=1.2, linestyle="-", markersize=3, **looks(learners))
    for learners, points in printed.groupby("learners"):
        hollow = {"linestyle": "none", "markerfacecolor": "none", "markersize": 7, "zorder": 3, **looks(learners)}
        axes.plot(points["mu"], points["seconds"], **hollow)
    fitted = ours[ours["source"] == FITTED]
    axes.plot(fitted["mu"], fitted["seconds"], "x", color=INK, markersize=7, zorder=4)
    axes.set(xlabel="mini-batch $\\mu$ (images)", ylabel="time (s)", title="not in the paper: the cost model")
    named_ticks(axes, BATCHES, 2)
    logarithmic(axes, "y")
