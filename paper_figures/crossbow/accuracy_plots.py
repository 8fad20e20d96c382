"""Drawings of accuracy: curves against epochs, and epochs or time to a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from paper_figures.crossbow import arithmetic, settings
from paper_figures.crossbow.comparison import seconds_ratio, stand_in
from paper_figures.crossbow.readings import accuracies, epochs, require
from paper_figures.crossbow.targets import common_target
from suite.papers.artifact import Evidence, Missing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[Evidence, "Figure"], None]
ON_RESNET32 = "resnet-32 "  # before the name of a group that stands beside LeNet's
METHODS = {"sma": "SMA", "ea-sgd": "EA-SGD", "s-sgd": "S-SGD"}
COLOURS = {"sma": "C0", "ea-sgd": "C1", "s-sgd": "C2"}


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
    names = [name for name in evidence.groups if name.split()[-1].isdigit() and _stored(evidence, name)]
    require(bool(names), f"training runs at {evidence.profile}")
    return names


def _stored(evidence: Evidence, name: str) -> bool:
    try:
        return bool(evidence.runs(name))
    except Missing:
        return False


def _say(axes: Any, place: str) -> None:
    if place:
        axes.set_title(f"Stand-in: {place}", fontsize="small")


def draw_curves(printed: float, *, training: bool = False, fixed: bool = False) -> Draw:
    """Test accuracy against epochs of every run, with the target; ``fixed``: the printed one at every profile."""

    def draw(evidence: Evidence, figure: Figure) -> None:
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
        axes.axhline(
            100 * target, color="0.45", linewidth=0.9, linestyle=(0, (1, 2)), label=f"target {100 * target:g}%"
        )
        axes.set_xlabel("epoch")
        axes.set_ylabel("accuracy (%)" if training else "test accuracy (%)")
        axes.locator_params(axis="x", integer=True)
        axes.legend()
        _say(axes, stand_in(evidence, names[0]))

    return draw


def draw_bars(printed: float, *, timed: bool = False, batches: bool = False) -> Draw:
    """Epochs (or time in epochs of one learner) to the target: a bar for the mean, a dot for each seed.

    Each network has its own axes and target. ``batches`` names the bars by the images of an update.
    """

    def draw(evidence: Evidence, figure: Figure) -> None:
        names = trained(evidence)
        places: dict[str, list[str]] = {}
        for name in names:
            places.setdefault(stand_in(evidence, name), []).append(name)
        widths = {"width_ratios": [1 + len(alike) for alike in places.values()]}
        row = figure.subplots(1, len(places), squeeze=False, gridspec_kw=widths)[0]
        for axes, (place, alike) in zip(row, places.items(), strict=True):
            target = common_target(evidence, *alike, printed=printed)
            for position, name in enumerate(alike):
                values = epochs(evidence, name, target)
                if timed:
                    values = [value * seconds_ratio(evidence, int(name.split()[1])) for value in values]
                _bar(axes, position, values, COLOURS[name.removeprefix(ON_RESNET32).split()[0]])
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
            _say(axes, place if len(places) == 1 else place.replace(" on ", "\non "))

    return draw


def _bar(axes: Any, position: int, values: Sequence[float], colour: str) -> None:
    reached = [value for value in values if math.isfinite(value)]
    if reached:
        axes.bar(position, sum(reached) / len(reached), width=0.6, color=colour, alpha=0.6)
        places = [position + 0.1 * (i - (len(reached) - 1) / 2) for i in range(len(reached))]
        axes.plot(places, reached, "o", color=colour, markeredgecolor="white", markersize=6)
    if len(reached) < len(values):
        axes.annotate(f"{len(values) - len(reached)} never", (position, 0), ha="center", va="bottom")


def draw_schedule(evidence: Evidence, figure: Figure) -> None:
    axes = figure.subplots()
    first, second = settings.RESNET50_DROPS
    axes.step([0, first, second, 90], [0.1, 0.01, 0.001, 0.001], where="post")
    axes.set_yscale("log")
    axes.set_xlabel("epoch")
    axes.set_ylabel("learning rate (resnet-50.sh starts at 0.1)")


def draw_implied_hours(evidence: Evidence, figure: Figure) -> None:
    (_, hours), *_ = arithmetic.fig10c(evidence)
    axes = figure.subplots()
    axes.bar(["TensorFlow", "Crossbow, m = 2"], hours.values, width=0.5)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("hours to 53%, implied by 33% and 5 h in print")
