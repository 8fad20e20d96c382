"""Drawings that several figures share: accuracy, arrival at a target, throughput, timelines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from paper_figures.crossbow import readings, server
from paper_figures.crossbow.readings import WINDOW
from suite.papers.figure import Artifact, Figure, Frame, Groups, pd, sns
from suite.report.style import GRID, INK, MARKERS, PALETTE, PRINTED

ALT_CURVES = "Test accuracy against epochs, median and range of the seeds; the network's printed target is dashed."
ALT_BARS = "Bars of the mean with a dot for each seed, and the printed values as open markers."
EIGHT_NOT_RUN = "8 GPUs not run: a cost model solved from print, and hosts that sleep to compute"  # a title
ALT_TIMELINES = "Timelines of learning, local and global synchronisation tasks on their streams."
HUES = {"SMA": PALETTE[0], "EA-SGD": PALETTE[1], "S-SGD": PALETTE[2]}
DASHES = ["", (4, 2), (5, 2, 1, 2), (1, 1.5), (5, 1), (3, 1, 1, 1), (1, 1)]  # LINES of the style, as seaborn has them
TASKS = {
    "learn": ("learning task, with its batch", "C0"),
    "local": ("local synchronisation", "C1"),
    "global": ("global synchronisation", "C2"),
}
TIMELINES = {  # trace -> scale of its seconds, least width of a task, label of the axis
    "recorded": (1000, 0.02, "measured time (ms), two learners on threads"),
    "virtual": (1, 0.0, "modelled time (task lengths), 2 GPUs of 2 learners"),
}


def bar_panel(
    name: str, title: str, runs: Callable[[str], Groups], size: tuple[float, float] = (6.4, 4.0)
) -> Artifact:
    """A figure that ``bars`` draws."""
    return Artifact(f"crossbow/{name}", title, runs, alt=ALT_BARS, size=size)


def say_stand_in(axes: Any, place: str, instead: str = "ResNet-32") -> None:
    """Say above the axes what was trained in the place of the paper's run, if anything was."""
    if place:
        told = f"{place}, not on all" if place.startswith(instead) else f"Stand-in for {instead}: {place}"
        axes.set_title(told, fontsize="small")


def say_least(axes: Any, table: pd.DataFrame) -> None:
    """Say below the axes how many runs arrive as early as the metric allows, which hides what differs earlier."""
    if share := table["epochs"].eq(WINDOW).mean():
        told = f"{share:.0%} of the runs arrive as soon as possible,\nwith a median of {WINDOW} epochs"
        axes.set_xlabel("\n".join(filter(None, (axes.get_xlabel(), told))), fontsize="small")


def finish(axes: Any, table: pd.DataFrame, label: str, columns: int = 3, instead: str = "ResNet-32") -> None:
    """Name the axis of arrivals by their target, say what stood in, and put the legend above."""
    axes.set_ylabel(label.format(f"{table['target'].iloc[0]:g}%"))
    say_stand_in(axes, table["stand_in"].iloc[0], instead)
    legend_above(axes, columns)


def printed_marks(axes: Any, places: Sequence[Any], values: Sequence[float], said: str = "printed") -> None:
    """Printed values as open diamonds."""
    axes.plot(places, values, marker="D", markersize=7, markeredgewidth=1.3, zorder=5, label=said, **PRINTED)


def printed_line(axes: Any, place: float, said: str) -> None:
    """A printed number of learners as a line across, where no value on the other axis is printed."""
    axes.axvline(place, color=INK, linewidth=1.2, linestyle=(0, (4, 2)), label=said)


def curves(frame: Frame, axes: Any, printed: float, *, instead: str = "ResNet-32", training: bool = False) -> None:
    """Test accuracy against epochs, median and range of the seeds, with the printed target of ``instead``.

    Another network has no printed target. Where something stands in, the accuracy at which verdicts compare the runs
    is drawn.
    """
    table = readings.accuracy_table(frame)
    by_epoch(table.assign(group=table["group"] + ", test") if training else table, axes)
    if training:
        sns.lineplot(
            table, x="epoch", y="training", color=GRID, linestyle=":", errorbar=None, label="the same, training",
            ax=axes,
        )  # fmt: skip
    place, said = table["stand_in"].iloc[0], f"printed target of {instead}: {100 * printed:g}%"
    if not place or place.startswith(instead):
        axes.axhline(100 * printed, color=INK, linewidth=1, linestyle=(0, (4, 2)), label=said)
    if place:
        target = readings.common_target(frame, *readings.trained(frame), printed=printed)
        axes.axhline(100 * target, color=GRID, linewidth=0.9, linestyle=":", label=f"compared at {100 * target:g}%")
    axes.set_ylabel("accuracy (%)" if training else "test accuracy (%)")
    axes.set_ylim(top=max(100.0, axes.get_ylim()[1]) if place else None)
    several = "median and range of the seeds" if table["seed"].nunique() > 1 else "one seed"
    axes.legend(title=several, loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    say_stand_in(axes, place, instead)


def by_epoch(table: pd.DataFrame, axes: Any) -> None:
    """Test accuracy against epochs, a line for each group: median and range of the seeds."""
    looks: dict[str, Any] = {"linewidth": 1.4, "estimator": "median", "errorbar": ("pi", 100), "ax": axes}
    dashes = DASHES[: table["group"].nunique()]
    sns.lineplot(table, x="epoch", y="test", hue="group", style="group", dashes=dashes, **looks)
    axes.set_xlabel("epoch")
    axes.locator_params(axis="x", integer=True)


def bars(
    table: pd.DataFrame,
    axes: Any,
    value: str,
    *,
    category: str = "group",
    dodge: str | None = None,
) -> list[Any]:
    """Bars of the mean of runs that arrived, a dot for each, and how many did not. Gives the categories.

    Across them lies a line: at 1 where values are relative, else at the least number of epochs that the metric can
    give, where a bar says no more than that. ``dodge``: a column whose values stand side by side in each category,
    instead of one bar.
    """
    order = list(table[category].unique())
    hue = dodge or "method"
    hues = {name: HUES[name] for name in table[hue].unique()}
    looks: dict[str, Any] = {"x": category, "y": value, "order": order, "hue": hue, "hue_order": list(hues)}
    looks |= {"palette": hues, "dodge": bool(dodge), "ax": axes}
    width = 0.8 if dodge else 0.6  # 0.8: seaborn spreads the dots so, whatever the bars
    sns.barplot(table, errorbar=None, saturation=1, alpha=0.65, width=width, **looks)
    sns.swarmplot(table, legend=False, size=6, edgecolor="white", linewidth=0.8, **looks)
    for place, name in enumerate(order):
        for j, each in enumerate(hues):
            part = table[(table[category] == name) & (table[hue] == each)]
            if missed := int(part[value].isna().sum()):
                at = place + (width * ((j + 0.5) / len(hues) - 0.5) if dodge else 0)
                ended = "" if dodge else f" in\n{part['trained'].max()} epochs"
                said = f"{missed} of {len(part)}\nnever{ended}"
                axes.annotate(said, (at, 0), (0, 3), textcoords="offset points", ha="center", size=6.5)
    if value == "relative":
        axes.axhline(1, color=GRID, linewidth=0.8, linestyle="-")
    else:
        said = f"soonest possible: a median of {WINDOW} epochs"
        axes.axhline(WINDOW, color=GRID, linewidth=1, linestyle="--", label=said)
    labels = [str(name).replace(", ", "\n") for name in order]
    axes.set_xticks(range(len(order)), labels)
    axes.grid(visible=False, axis="x")
    axes.set(xlim=(-0.6, len(order) - 0.4), xlabel="", ylim=(0, None))
    return order


def legend_above(axes: Any, columns: int = 3) -> None:
    """The legend between title and axes, where it covers nothing."""
    handles, names = axes.get_legend_handles_labels()
    title = axes.get_title(loc="left")
    lines = -(-len(names) // columns)
    if title:
        axes.set_title(title, fontsize="small", pad=6 + 14 * lines)
    axes.legend(
        handles, names, title="", ncols=columns, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.1,
        fontsize="small",
    )  # fmt: skip


def throughput(frame: Frame, axes: Any, printed: dict[int, float] | None = None) -> None:
    """Throughput over one learner against learners: in one step, and as one batch k times as large.

    Median and middle 80% of the repeats. ``printed``: factor by number of learners.
    """
    table = readings.throughput_table(frame)
    table = table.assign(series=table["network"] + ", " + table["way"] + " (" + table["device"] + ")")
    looks = {"markers": MARKERS[: table["series"].nunique()], "estimator": "median", "errorbar": ("pi", 80)}
    sns.lineplot(table, x="learners", y="over_one", hue="series", style="series", ax=axes, **looks)
    if printed:
        printed_marks(axes, list(printed), list(printed.values()), "printed, ResNet-32 (GPU)")
    axes.axhline(1, color=GRID, linewidth=0.8, linestyle=":")
    axes.set_xticks(sorted(table["learners"].unique()))
    axes.set_xlabel("learners on one device, m")
    axes.set_ylabel("throughput / one learner's\n(band: middle 80% of the repeats)")
    legend_above(axes, 1)


def timelines(frame: Frame, figure: Figure, *names: str) -> None:
    """A row for each trace of the tasks: ``virtual`` or ``recorded``."""
    rows = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    for axes, name in zip(rows, names, strict=True):
        timeline(axes, frame.run("tasks").curve(name), name)
    handles, labels = rows[0].get_legend_handles_labels()
    marks = dict(zip(labels, handles, strict=True))  # one of each kind of task
    figure.legend(marks.values(), marks.keys(), ncols=3, loc="outside upper left")


def timeline(axes: Any, table: Any, name: str) -> None:
    """The tasks of four iterations on their streams."""
    scale, narrowest, unit = TIMELINES[name]
    table = table[table["iteration"] < 4]
    streams = sorted(set(zip(table["device"], table["stream"], strict=True)), reverse=True)
    for row in table.to_dict("records"):
        place = streams.index((row["device"], row["stream"]))
        left, length = scale * row["start"], scale * (row["end"] - row["start"])
        title, colour = TASKS[row["kind"]]
        axes.barh(place, max(length, narrowest), left=left, color=colour, label=title)
        if row["kind"] == "learn":
            middle, said = left + length / 2, f"B{row['batch']}"
            axes.text(middle, place, said, va="center", ha="center", fontsize=6.5, color="white")
    several = table["device"].nunique() > 1
    names = [stream if stream.startswith("learner") else "synchronisation" for _, stream in streams]
    labels = [f"GPU {device}, {said}" if several else said for (device, _), said in zip(streams, names, strict=True)]
    axes.set_yticks(range(len(streams)), labels)
    axes.set_xlabel(unit)
    axes.set_xlim(left=0)
    axes.grid(visible=False)


def on_eight_gpus(axes: Any, value: str, label: str) -> None:
    """Throughput on 8 GPUs against learners per GPU, by the cost model; ``value`` and its ``label`` as in the table.

    At m = 1 and m = 4 the model was solved from printed values, which is marked.
    """
    table = server.every_iteration()
    sns.lineplot(
        table, x="learners", y=value, marker="o", color=PALETTE[0], errorbar=None, label="8 GPUs, cost model", ax=axes
    )
    fitted = table[table["calibrated"]]
    calibration_marks(axes, fitted["learners"], fitted[value])
    axes.set_xticks(sorted(table["learners"]))
    axes.set(xlabel="learners per GPU, m", ylabel=label)


def of_hosts(axes: Any, places: Sequence[Any], rows: pd.DataFrame, one: float = 1.0, which: str = "") -> None:
    """Throughput of eight hosts that sleep to compute, over ``one``, with 95% intervals; ``which`` is named first."""
    speed = rows["images_per_second"] / one
    errors = [speed - rows["low"] / one, rows["high"] / one - speed]
    axes.errorbar(
        places,
        speed,
        errors,
        color=PALETTE[3],
        marker="P",
        label=f"{which}8 hosts that sleep as Fig. 12(a) has it, PCIe 3.0 x16",
    )


def calibration_marks(axes: Any, places: Any, values: Any) -> None:
    """Points of a model that were fitted to what is printed: no predictions."""
    axes.plot(
        places, values, "x", color=INK, markersize=9, markeredgewidth=1.4, linestyle="none", zorder=4,
        label="calibration: solved from printed values",
    )  # fmt: skip
