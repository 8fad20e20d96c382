"""Drawings that several figures share: accuracy, epochs to a target, throughput, timelines, paths of replicas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from paper_figures.crossbow import server_model, settings
from paper_figures.crossbow.readings import (
    accuracies,
    common_target,
    epochs,
    on_gpu,
    require,
    seconds_ratio,
    stand_in,
)
from suite.papers.artifact import Evidence, Missing
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALT_CURVES = "Test accuracy against epochs with the target as a dashed line."
ALT_BARS = "Bars with a dot for each seed."
ALT_THROUGHPUT = "Throughput against learners, relative to one learner."
ALT_EIGHT_GPUS = "Modelled throughput on eight GPUs against learners per GPU, with the printed value."
ALT_TIMELINES = "Timelines of learning, local and global synchronisation tasks on their streams."
ON_RESNET32 = "resnet-32 "  # before the name of a group that stands beside LeNet's
METHODS = {"sma": "SMA", "ea-sgd": "EA-SGD", "s-sgd": "S-SGD"}
COLOURS = {"sma": "C0", "ea-sgd": "C1", "s-sgd": "C2"}
TASKS = {
    "learn": ("learning task, with its batch", "C0"),
    "local": ("local synchronisation", "C1"),
    "global": ("global synchronisation", "C2"),
}
TIMELINES = {"recorded": (1000, "ms, two learners on threads"), "virtual": (1, "task lengths, 2 GPUs of 2 learners")}


def titled(name: str) -> str:
    """How a group is called in a drawing: ``sma 8 tau 4`` is SMA, k = 8, tau = 4."""
    method, k, *option = name.removeprefix(ON_RESNET32).split()
    if not option:
        return f"{METHODS[method]}, k = {k}"
    kind, value = option
    return f"{METHODS[method]}, k = {k}, " + (f"{value} devices" if kind == "devices" else f"{kind} = {value}")


def trained(evidence: Evidence) -> list[str]:
    """The groups of training runs that are stored, without those that measure throughput.

    A drawing shows what has been trained; ResNet-32's runs, the longest, may come after LeNet's.
    """
    names = [name for name in evidence.groups if name.split()[-1].isdigit() and stored(evidence, name)]
    require(bool(names), f"training runs at {evidence.profile}")
    return names


def stored(evidence: Evidence, name: str) -> bool:
    try:
        return bool(evidence.runs(name))
    except Missing:
        return False


def say_stand_in(axes: Any, place: str) -> None:
    """Say above the axes what was trained in the place of the paper's run, if anything was."""
    if place:
        axes.set_title(f"Stand-in: {place}", fontsize="small")


def curves(
    evidence: Evidence, figure: Figure, printed: float, *, training: bool = False, fixed: bool = False
) -> None:
    """Test accuracy against epochs of every run, with the target; ``fixed``: the printed one at every profile."""
    from suite.report.style import LINES

    names = trained(evidence)
    axes = figure.subplots()
    for position, name in enumerate(names):
        look: dict[str, Any] = {"color": f"C{position}", "linestyle": LINES[position]}
        for index, run in enumerate(evidence.runs(name)):
            values = [100 * value for value in accuracies(run)]
            count = range(1, len(values) + 1)
            label = titled(name) + (", test" if training else "") if index == 0 else None
            axes.plot(count, values, label=label, linewidth=1.2, **look)
            if training:
                table = run.curve("evaluations")
                errors = table["train_error"][table["update"] > 0]
                label = f"{titled(name)}, training" if index == 0 else None
                axes.plot(count, 100 * (1 - errors), linestyle=":", color=f"C{position}", label=label)
    target = printed if fixed else common_target(evidence, *names, printed=printed)
    axes.axhline(100 * target, color="0.45", linewidth=0.9, linestyle=(0, (1, 2)), label=f"target {100 * target:g}%")
    axes.set_xlabel("epoch")
    axes.set_ylabel("accuracy (%)" if training else "test accuracy (%)")
    axes.locator_params(axis="x", integer=True)
    axes.legend()
    say_stand_in(axes, stand_in(evidence, names[0]))


def bars(evidence: Evidence, figure: Figure, printed: float, *, timed: bool = False, batches: bool = False) -> None:
    """Epochs (or time in epochs of one learner) to the target: a bar for the mean, a dot for each seed.

    Each network has its own axes and target. ``batches`` names the bars by the images of an update.
    """
    places: dict[str, list[str]] = {}
    for name in trained(evidence):
        places.setdefault(stand_in(evidence, name), []).append(name)
    widths = {"width_ratios": [1 + len(alike) for alike in places.values()]}
    row = figure.subplots(1, len(places), squeeze=False, gridspec_kw=widths)[0]
    for axes, (place, alike) in zip(row, places.items(), strict=True):
        target = common_target(evidence, *alike, printed=printed)
        for position, name in enumerate(alike):
            values = epochs(evidence, name, target)
            if timed:
                values = [value * seconds_ratio(evidence, int(name.split()[1])) for value in values]
            bar(axes, position, values, COLOURS[name.removeprefix(ON_RESNET32).split()[0]])
        labels = [titled(name).replace(", ", "\n") for name in alike]
        if batches:
            every = [evidence.groups[name][0].settings for name in alike]
            labels = [str(s["batch"] * s.get("workers", 1)) for s in every]
            axes.set_xlabel("images in an update")
        axes.set_xticks(range(len(alike)), labels)
        axes.set_xlim(-0.6, len(alike) - 0.4)
        aim = f"{100 * target:g}% test accuracy"
        axes.set_ylabel(f"time to {aim}, in epochs of k = 1" if timed else f"epochs to {aim}")
        axes.grid(visible=False, axis="x")
        say_stand_in(axes, place if len(places) == 1 else place.replace(" on ", "\non "))


def bar(axes: Any, position: int, values: Sequence[float], colour: str) -> None:
    """The mean of what is finite, a dot for each, and how many are not."""
    reached = [value for value in values if math.isfinite(value)]
    if reached:
        axes.bar(position, sum(reached) / len(reached), width=0.6, color=colour, alpha=0.6)
        places = [position + 0.1 * (i - (len(reached) - 1) / 2) for i in range(len(reached))]
        axes.plot(places, reached, "o", color=colour, markeredgecolor="white", markersize=6)
    if len(reached) < len(values):
        axes.annotate(f"{len(values) - len(reached)} never", (position, 0), ha="center", va="bottom")


def network(name: str) -> str:
    return settings.NETWORKS.get(name, "a small LeNet")


def throughput(evidence: Evidence, axes: Any) -> None:
    """Throughput over one learner against learners: in one step, and as one batch k times as large.

    Groups of throughput runs bear the names of networks.
    """
    names = [name for name in evidence.groups if not name[-1].isdigit() or name in settings.NETWORKS]
    require(bool(names), f"throughput runs at {evidence.profile}")
    every: set[int] = set()
    for position, name in enumerate(names):
        run = evidence.run(name)
        counts = run.spec.settings["learners"]
        every |= set(counts)
        middle, large, below, above = [], [], [], []
        for k in counts:
            ordered = sorted(run.results[f"over_one_{k}"])
            middle.append(median(ordered))
            below.append(middle[-1] - ordered[len(ordered) // 10])
            above.append(ordered[-1 - len(ordered) // 10] - middle[-1])
            large.append(middle[-1] / median(run.results[f"over_batch_{k}"]))
        title, place = network(name), "GPU" if on_gpu(run) else "CPU"
        colour = f"C{position}"
        axes.errorbar(
            counts,
            middle,
            [below, above],
            marker="o",
            color=colour,
            linestyle="-",
            capsize=2,
            label=f"{title}, k learners ({place})",
        )
        axes.plot(counts, large, marker="s", color=colour, linestyle="--", label=f"{title}, k times the batch")
    axes.axhline(1, color="0.5", linewidth=0.8, linestyle=":")
    axes.set_xticks(sorted(every))
    axes.set_xlabel("learners k")
    axes.set_ylabel("throughput / one learner's")
    axes.legend()


def timelines(evidence: Evidence, figure: Figure, *names: str) -> None:
    """A row for each trace of the tasks: ``virtual`` or ``recorded``."""
    rows = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    for axes, name in zip(rows, names, strict=True):
        timeline(axes, evidence.run("tasks").curve(name), name)
    handles, labels = rows[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=3, loc="outside upper left")


def timeline(axes: Any, table: Any, name: str) -> None:
    """The tasks of four iterations on their streams."""
    scale, unit = TIMELINES[name]
    table = table[table["iteration"] < 4]
    several = table["device"].nunique() > 1
    streams = sorted(set(zip(table["device"], table["stream"], strict=True)), reverse=True)
    seen: set[str] = set()
    rows: list[dict[Any, Any]] = table.to_dict("records")
    for row in rows:
        kind, place = row["kind"], streams.index((row["device"], row["stream"]))
        left, length = scale * row["start"], scale * (row["end"] - row["start"])
        width = max(length, 0.02 if name == "recorded" else 0.0)
        title, colour = TASKS[kind]
        axes.barh(place, width, left=left, color=colour, label=None if kind in seen else title)
        seen.add(kind)
        if kind == "learn":
            axes.text(
                left + length / 2, place, f"B{row['batch']}", va="center", ha="center", fontsize=6.5, color="white"
            )
    labels = [f"GPU {device}, {stream}" if several else stream for device, stream in streams]
    axes.set_yticks(
        range(len(streams)),
        [text.removesuffix(" 0").removesuffix(" 1") if "sync" in text else text for text in labels],
    )
    axes.set_xlabel(f"time ({unit})")
    axes.grid(visible=False)


def paths(evidence: Evidence, figure: Figure) -> None:
    """Two replicas on their own batches, and the average model between them."""
    axes = figure.subplots()
    for name, part in evidence.run("algebra").curve("paths").groupby("model"):
        width = 1.8 if name == "average" else 0.9
        axes.plot(part["x"], part["y"], marker="o", markersize=2.5, linewidth=width, label=str(name))
        if name == "average":
            first = (part["x"].iloc[0], part["y"].iloc[0])
            axes.annotate("start", first, (6, 0), textcoords="offset points")
    axes.set_xlabel("first parameter")
    axes.set_ylabel("second parameter")
    axes.legend()


def throughput_on_eight_gpus(figure: Figure) -> None:
    """Throughput on 8 GPUs against learners per GPU, by the cost model of the paper's server."""
    axes = figure.subplots()
    speed = [server_model.throughput(m) for m in (1, 2, 4)]
    axes.plot((1, 2, 4), [s / speed[0] for s in speed], marker="o", label="8 GPUs, modelled")
    axes.plot([2], [printed_value("crossbow/fig13a/throughput")], "D", color="C6", label="8 GPUs, printed")
    axes.set_xticks((1, 2, 4))
    axes.set_xlabel("learners per GPU")
    axes.set_ylabel("throughput / one learner per GPU")
    axes.legend()
