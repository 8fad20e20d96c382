"""Figures about accuracy: epochs and time to a target (Figs. 3, 9, 10, 11, 12b-c, 13b, 15, 16)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from paper_figures.artifact import Artifact, Evidence
from paper_figures.crossbow import arithmetic, comparison, settings
from paper_figures.crossbow.comparison import BATCHES, NETWORK, STAND_IN, seconds_ratio
from paper_figures.crossbow.readings import accuracies, epochs, require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def with_throughput(*names: str) -> Callable[[str], settings.Groups]:
    def runs(profile: str) -> settings.Groups:
        found = settings.groups(profile, *names)
        return {**found, "throughput": settings.throughput(profile)[NETWORK[profile]]}

    return runs


def only(*names: str) -> Callable[[str], settings.Groups]:
    return lambda profile: settings.groups(profile, *names)


def on_one_device(profile: str) -> settings.Groups:
    """The methods of Fig. 11(a): ResNet-32 itself at ``reduced`` too, if only for a few epochs."""
    if profile == "reduced":
        return settings.resnet32_part("sma 1", "sma 4", "s-sgd 4", "ea-sgd 4", "s-sgd 1")
    return with_throughput(*ONE_DEVICE)(profile)


def batch_runs(profile: str) -> settings.Groups:
    """Plain training with batches that grow with the number of shares."""
    return settings.groups(profile, *(f"s-sgd {k}" for k in BATCHES[profile]))


def draw_curves(target: Callable[[str], float], training: bool = False) -> Callable[[Evidence, Figure], None]:
    """Test accuracy against epochs of every group, with the target line."""

    def draw(evidence: Evidence, figure: Figure) -> None:
        require(bool(evidence.groups), f"training runs at {evidence.profile}")
        axes = figure.subplots()
        for position, name in enumerate(name for name in evidence.groups if name != "throughput"):
            for index, run in enumerate(evidence.runs(name)):
                values = [100 * value for value in accuracies(run)]
                label = f"{name}, test" if index == 0 else None
                axes.plot(range(1, len(values) + 1), values, color=f"C{position}", label=label, linestyle="-")
                if training:
                    table = run.curve("evaluations")
                    errors = table["train_error"][table["update"] > 0]
                    axes.plot(
                        range(1, len(values) + 1), 100 * (1 - errors), ":", color=f"C{position}", label="training"
                    )
        axes.axhline(100 * target(evidence.profile), color="C1", linewidth=0.9, linestyle="--", label="target")
        axes.set_xlabel("epoch")
        axes.set_ylabel("accuracy (%)")
        axes.legend()
        _say(axes, evidence)

    return draw


def _say(axes: object, evidence: Evidence) -> None:
    if STAND_IN[evidence.profile]:
        axes.set_title(f"Stand-in: {STAND_IN[evidence.profile]}")  # type: ignore[attr-defined]


def draw_bars(
    names: Sequence[str], target: dict[str, float], *, timed: bool = False, unit: str = "epochs to target"
) -> Callable[[Evidence, Figure], None]:
    """Epochs (or time in epochs of one learner) to the target, a bar per group and a dot per seed."""

    def draw(evidence: Evidence, figure: Figure) -> None:
        require(bool(evidence.groups), f"training runs at {evidence.profile}")
        axes = figure.subplots()
        for position, name in enumerate(name for name in names if name in evidence.groups):
            values = epochs(evidence, name, target[evidence.profile])
            if timed:
                values = [value * seconds_ratio(evidence, int(name.split()[1])) for value in values]
            reached = [value for value in values if math.isfinite(value)]
            if reached:
                axes.bar(position, sum(reached) / len(reached), color=f"C{position % 6}", alpha=0.6)
                axes.plot([position] * len(reached), reached, "o", color=f"C{position % 6}")
            if len(reached) < len(values):
                axes.annotate(f"{len(values) - len(reached)} never", (position, 0), ha="center", va="bottom")
        labels = [name for name in names if name in evidence.groups]
        axes.set_xticks(range(len(labels)), labels, rotation=20)
        axes.set_ylabel(unit)
        _say(axes, evidence)

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


def final(profile: str) -> float:
    return settings.FINAL_TARGET[profile]


TIME = "time to target (epochs of one learner)"

ALT_CURVES = "Test accuracy against epochs with the target as a dashed line."

ALT_BARS = "Bars with a dot for each seed."


def tau_runs(profile: str) -> settings.Groups:
    k = settings.TAU_LEARNERS[profile]
    return settings.groups(profile, f"sma {k}", f"sma {k} tau 4")


def draw_tau(evidence: Evidence, figure: Figure) -> None:
    draw_bars(list(evidence.groups), settings.FINAL_TARGET)(evidence, figure)


ONE_DEVICE = ("s-sgd 1", "sma 1", "sma 4")

MANY_DEVICES = ("s-sgd 8", "sma 8", "sma 16", "sma 32")


ARTIFACTS = {
    "fig3": Artifact(
        "crossbow/fig3",
        "Epochs of plain training to the target against batch size",
        batch_runs,
        (arithmetic.fig3, comparison.measure_batches),
        draw_bars([f"s-sgd {k}" for k in (1, 4, 8, 16, 32)], settings.TARGET),
        ALT_BARS,
    ),
    "fig9a": Artifact(
        "crossbow/fig9a",
        "Training and test accuracy of LeNet, plain training",
        settings.lenet_target,
        (comparison.measure_lenet_target,),
        draw_curves(lambda profile: 0.99, training=True),
        ALT_CURVES,
    ),
    "fig9b": Artifact(
        "crossbow/fig9b",
        "Training and test accuracy of ResNet-32, plain training",
        only("s-sgd 1"),
        (arithmetic.fig9b, comparison.measure_target),
        draw_curves(final, training=True),
        ALT_CURVES,
    ),
    "fig9c": Artifact(
        "crossbow/fig9c",
        "Training and test accuracy of VGG-16, plain training",
        lambda profile: {name: runs for name, runs in settings.vgg16(profile).items() if name == "s-sgd 1"},
        (arithmetic.fig9c, comparison.measure_target),
        draw_curves(lambda profile: settings.VGG_TARGET, training=True),
        ALT_CURVES,
    ),
    "fig9d": Artifact(
        "crossbow/fig9d",
        "Learning rate of ResNet-50, the part of the figure that needs no ImageNet",
        measures=(arithmetic.fig9d,),
        draw=draw_schedule,
        alt="The learning rate falls tenfold at epochs 30 and 60.",
    ),
    "fig10a": Artifact(
        "crossbow/fig10a",
        "Time to accuracy of ResNet-32: plain training, one learner, four learners",
        with_throughput(*ONE_DEVICE),
        (arithmetic.fig10a, comparison.measure_resnet_time),
        draw_bars(ONE_DEVICE, settings.FINAL_TARGET, timed=True, unit=TIME),
        ALT_BARS,
    ),
    "fig10b": Artifact(
        "crossbow/fig10b",
        "Time to accuracy of VGG-16",
        settings.vgg16,
        (arithmetic.fig10b,),
        draw_bars(("s-sgd 1", "sma 1", "sma 3"), {"paper": settings.VGG_TARGET}),
        ALT_BARS,
    ),
    "fig10c": Artifact(
        "crossbow/fig10c",
        "Time to accuracy of ResNet-50, from the printed numbers alone",
        measures=(arithmetic.fig10c,),
        draw=draw_implied_hours,
        alt="Two bars: the hours that 33% and five hours imply for TensorFlow and Crossbow.",
    ),
    "fig10d": Artifact(
        "crossbow/fig10d",
        "Time to accuracy of LeNet: plain training, one learner, four learners",
        lambda profile: {} if profile == "paper" else with_throughput(*ONE_DEVICE)(profile),
        (comparison.measure_lenet_time,),
        draw_bars(ONE_DEVICE, settings.FINAL_TARGET, timed=True, unit=TIME),
        ALT_BARS,
    ),
    "fig11a": Artifact(
        "crossbow/fig11a",
        "Test accuracy of ResNet-32 on one device",
        on_one_device,
        (comparison.measure_early(0.6, 0.7, 0.8),),
        draw_curves(final),
        ALT_CURVES,
    ),
    "fig11b": Artifact(
        "crossbow/fig11b",
        "Test accuracy of VGG-16 on one device",
        settings.vgg16,
        (comparison.measure_early(0.4, 0.5, 0.6),),
        draw_curves(lambda profile: settings.VGG_TARGET),
        ALT_CURVES,
    ),
    "fig11c": Artifact(
        "crossbow/fig11c",
        "Test accuracy of ResNet-32 with the replicas of 8 GPUs, against epochs",
        only(*MANY_DEVICES),
        (arithmetic.fig11c,),
        draw_curves(final),
        ALT_CURVES,
    ),
    "fig11d": Artifact(
        "crossbow/fig11d",
        "Test accuracy of VGG-16 against epochs",
        settings.vgg16,
        draw=draw_curves(lambda profile: settings.VGG_TARGET),
        alt=ALT_CURVES,
    ),
    "fig12b": Artifact(
        "crossbow/fig12b",
        "Epochs to the target against learners on one device",
        only("sma 1", "sma 2", "sma 4"),
        (arithmetic.fig12b, comparison.measure_epochs),
        draw_bars(("sma 1", "sma 2", "sma 4"), settings.TARGET),
        ALT_BARS,
    ),
    "fig12c": Artifact(
        "crossbow/fig12c",
        "Time to the target against learners on one device",
        with_throughput("sma 1", "sma 2", "sma 4"),
        (arithmetic.fig12c,),
        draw_bars(("sma 1", "sma 2", "sma 4"), settings.TARGET, timed=True, unit=TIME),
        ALT_BARS,
    ),
    "fig13b": Artifact(
        "crossbow/fig13b",
        "Epochs to the target with the replicas of 8 GPUs",
        only("sma 8", "sma 16", "sma 32"),
        (comparison.measure_many_epochs,),
        draw_bars(("sma 8", "sma 16", "sma 32"), settings.TARGET),
        ALT_BARS,
    ),
    "fig15": Artifact(
        "crossbow/fig15",
        "Averaging with momentum against elastic averaging",
        only("sma 4", "ea-sgd 4", "sma 16", "ea-sgd 16"),
        (arithmetic.fig15, comparison.measure_elastic),
        draw_bars(("sma 4", "ea-sgd 4", "sma 16", "ea-sgd 16"), settings.FINAL_TARGET),
        ALT_BARS,
    ),
    "fig16": Artifact(
        "crossbow/fig16",
        "Epochs to the target against the synchronisation interval",
        tau_runs,
        (arithmetic.fig16, comparison.measure_interval),
        draw_tau,
        ALT_BARS,
    ),
}
