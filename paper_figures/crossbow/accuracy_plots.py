"""Drawings of accuracy: curves against epochs, and epochs or time to a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from paper_figures.artifact import Evidence
from paper_figures.crossbow import arithmetic, settings
from paper_figures.crossbow.comparison import seconds_ratio, stand_in
from paper_figures.crossbow.readings import accuracies, epochs, require
from paper_figures.crossbow.targets import common_target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[Evidence, "Figure"], None]
ON_RESNET32 = "resnet-32 "  # before the name of a group that stands beside LeNet's
METHODS = {"sma": "SMA", "ea-sgd": "EA-SGD", "s-sgd": "S-SGD"}


def titled(name: str) -> str:
    """How a group is called in a drawing: ``sma 8 tau 4`` is SMA, k = 8, tau = 4."""
    network = "ResNet-32, " if name.startswith(ON_RESNET32) else ""
    method, k, *option = name.removeprefix(ON_RESNET32).split()
    last = f", {option[0]} = {option[1]}" if option else ""
    return f"{network}{METHODS[method]}, k = {k}{last}"


def trained(evidence: Evidence) -> list[str]:
    """The groups of training runs, without those that measure throughput."""
    names = [name for name in evidence.groups if name.split()[-1].isdigit()]
    require(bool(names), f"training runs at {evidence.profile}")
    return names


def _say(axes: Any, evidence: Evidence, names: Sequence[str]) -> None:
    found = dict.fromkeys(stand_in(evidence, name) for name in names)
    if any(found):
        axes.set_title("Stand-in: " + "; ".join(found), fontsize="small")


def draw_curves(printed: float, *, training: bool = False, fixed: bool = False) -> Draw:
    """Test accuracy against epochs of every run, with the target; ``fixed``: the printed one at every profile."""

    def draw(evidence: Evidence, figure: Figure) -> None:
        names = trained(evidence)
        axes = figure.subplots()
        for position, name in enumerate(names):
            for index, run in enumerate(evidence.runs(name)):
                values = [100 * value for value in accuracies(run)]
                count = range(1, len(values) + 1)
                label = titled(name) + (", test" if training else "") if index == 0 else None
                axes.plot(count, values, color=f"C{position}", label=label, linestyle="-")
                if training:
                    table = run.curve("evaluations")
                    errors = table["train_error"][table["update"] > 0]
                    label = f"{titled(name)}, training" if index == 0 else None
                    axes.plot(count, 100 * (1 - errors), linestyle=":", color=f"C{position}", label=label)
        target = printed if fixed else common_target(evidence, *names, printed=printed)
        axes.axhline(100 * target, color="0.4", linewidth=0.9, linestyle="--", label=f"target {100 * target:g}%")
        axes.set_xlabel("epoch")
        axes.set_ylabel("accuracy (%)" if training else "test accuracy (%)")
        axes.locator_params(axis="x", integer=True)
        axes.legend()
        _say(axes, evidence, names)

    return draw


def draw_bars(printed: float, *, timed: bool = False, names: Sequence[str] = ()) -> Draw:
    """Epochs (or time in epochs of one learner) to the target: a bar for the mean, a dot for each seed.

    Groups are those of the runs, in their order, or ``names``. Bars share a target if they share a network.
    """

    def draw(evidence: Evidence, figure: Figure) -> None:
        shown = [name for name in names or trained(evidence) if name in evidence.groups]
        require(bool(shown), f"training runs at {evidence.profile}")
        axes = figure.subplots()
        targets: dict[str, float] = {}
        for place in dict.fromkeys(stand_in(evidence, name) for name in shown):
            alike = [name for name in shown if stand_in(evidence, name) == place]
            targets |= dict.fromkeys(alike, common_target(evidence, *alike, printed=printed))
        for position, name in enumerate(shown):
            values = epochs(evidence, name, targets[name])
            if timed:
                values = [value * seconds_ratio(evidence, int(name.split()[1])) for value in values]
            reached = [value for value in values if math.isfinite(value)]
            if reached:
                axes.bar(position, sum(reached) / len(reached), color=f"C{position % 6}", alpha=0.5)
                spread = [position + 0.08 * (i - (len(reached) - 1) / 2) for i in range(len(reached))]
                axes.plot(spread, reached, "o", color=f"C{position % 6}")
            if len(reached) < len(values):
                axes.annotate(f"{len(values) - len(reached)} never", (position, 0), ha="center", va="bottom")
        axes.set_xticks(range(len(shown)), [titled(name).replace(", ", "\n", 1) for name in shown])
        aims = " or ".join(f"{100 * target:g}%" for target in dict.fromkeys(targets.values()))
        axes.set_ylabel(f"time to {aims} (epochs of one learner)" if timed else f"epochs to {aims}")
        axes.grid(visible=False, axis="x")
        _say(axes, evidence, shown)

    return draw


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
    axes.bar(["TensorFlow", "Crossbow, m = 2"], hours.values)
    axes.set_ylabel("hours to 53%, implied by 33% and 5 h in print")
