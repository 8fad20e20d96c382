"""Figures about accuracy: epochs and time to a target (Figs. 3, 9, 10, 11, 12b-c, 13b, 15, 16)."""

from __future__ import annotations

from collections.abc import Callable

from paper_figures.crossbow import arithmetic, comparison, settings
from paper_figures.crossbow.accuracy_plots import draw_bars, draw_curves, draw_implied_hours, draw_schedule
from paper_figures.crossbow.comparison import BATCHES, NETWORK
from suite.papers.artifact import Artifact


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


ALT_CURVES = "Test accuracy against epochs with the target as a dashed line."

ALT_BARS = "Bars with a dot for each seed."


def tau_runs(profile: str) -> settings.Groups:
    k = settings.TAU_LEARNERS[profile]
    return settings.groups(profile, f"sma {k}", f"sma {k} tau 4")


def elastic_runs(profile: str) -> settings.Groups:
    """Few and many learners; at ``reduced`` the few with ResNet-32 itself too."""
    found = settings.groups(profile, "sma 4", "ea-sgd 4", "sma 16", "ea-sgd 16")
    if profile == "reduced":
        part = settings.resnet32_part("sma 4", "ea-sgd 4")
        found |= {f"resnet-32 {name}": runs for name, runs in part.items()}
    return found


def part_at_reduced(*names: str) -> Callable[[str], settings.Groups]:
    """Groups of ResNet-32 at ``reduced`` too, for as many epochs as a small machine trains."""

    def runs(profile: str) -> settings.Groups:
        known = [name for name in names if int(name.split()[1]) in (1, 4)]
        return settings.resnet32_part(*known) if profile == "reduced" else settings.groups(profile, *names)

    return runs


ONE_DEVICE = ("s-sgd 1", "sma 1", "sma 4")

MANY_DEVICES = ("s-sgd 8", "sma 8", "sma 16", "sma 32")


ARTIFACTS = {
    "fig3": Artifact(
        "crossbow/fig3",
        "Epochs of plain training to the target against batch size",
        batch_runs,
        (arithmetic.fig3, comparison.measure_batches),
        draw_bars(settings.TARGET, batches=True),
        ALT_BARS,
    ),
    "fig9a": Artifact(
        "crossbow/fig9a",
        "Training and test accuracy of LeNet, plain training",
        settings.lenet_target,
        (comparison.measure_lenet_target,),
        draw_curves(settings.LENET_TARGET, training=True, fixed=True),
        ALT_CURVES,
    ),
    "fig9b": Artifact(
        "crossbow/fig9b",
        "Training and test accuracy of ResNet-32, plain training",
        part_at_reduced("s-sgd 1"),
        (arithmetic.fig9b, comparison.measure_target),
        draw_curves(settings.FINAL_TARGET, training=True),
        ALT_CURVES,
    ),
    "fig9c": Artifact(
        "crossbow/fig9c",
        "Training and test accuracy of VGG-16, plain training",
        lambda profile: {name: runs for name, runs in settings.vgg16(profile).items() if name == "s-sgd 1"},
        (arithmetic.fig9c, comparison.measure_target),
        draw_curves(settings.VGG_TARGET, training=True),
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
        draw_bars(settings.FINAL_TARGET, timed=True),
        ALT_BARS,
    ),
    "fig10b": Artifact(
        "crossbow/fig10b",
        "Time to accuracy of VGG-16",
        settings.vgg16,
        (arithmetic.fig10b,),
        draw_bars(settings.VGG_TARGET),
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
        draw_bars(settings.LENET_TARGET, timed=True),
        ALT_BARS,
    ),
    "fig11a": Artifact(
        "crossbow/fig11a",
        "Test accuracy of ResNet-32 on one device",
        on_one_device,
        (comparison.measure_early(0.6, 0.7, 0.8),),
        draw_curves(settings.FINAL_TARGET),
        ALT_CURVES,
    ),
    "fig11b": Artifact(
        "crossbow/fig11b",
        "Test accuracy of VGG-16 on one device",
        settings.vgg16,
        (comparison.measure_early(0.4, 0.5, 0.6),),
        draw_curves(settings.VGG_TARGET),
        ALT_CURVES,
    ),
    "fig11c": Artifact(
        "crossbow/fig11c",
        "Test accuracy of ResNet-32 with the replicas of 8 GPUs, against epochs",
        only(*MANY_DEVICES),
        (arithmetic.fig11c,),
        draw_curves(settings.FINAL_TARGET),
        ALT_CURVES,
    ),
    "fig11d": Artifact(
        "crossbow/fig11d",
        "Test accuracy of VGG-16 against epochs",
        settings.vgg16,
        draw=draw_curves(settings.VGG_TARGET),
        alt=ALT_CURVES,
    ),
    "fig12b": Artifact(
        "crossbow/fig12b",
        "Epochs to the target against learners on one device",
        part_at_reduced("sma 1", "sma 2", "sma 4"),
        (arithmetic.fig12b, comparison.measure_epochs),
        draw_bars(settings.TARGET),
        ALT_BARS,
    ),
    "fig12c": Artifact(
        "crossbow/fig12c",
        "Time to the target against learners on one device",
        with_throughput("sma 1", "sma 2", "sma 4"),
        (arithmetic.fig12c,),
        draw_bars(settings.TARGET, timed=True),
        ALT_BARS,
    ),
    "fig13b": Artifact(
        "crossbow/fig13b",
        "Epochs to the target with the replicas of 8 GPUs",
        only("sma 8", "sma 16", "sma 32"),
        (comparison.measure_many_epochs,),
        draw_bars(settings.TARGET),
        ALT_BARS,
    ),
    "fig15": Artifact(
        "crossbow/fig15",
        "Averaging with momentum against elastic averaging",
        elastic_runs,
        (arithmetic.fig15, comparison.measure_elastic),
        draw_bars(settings.FINAL_TARGET),
        ALT_BARS,
    ),
    "fig16": Artifact(
        "crossbow/fig16",
        "Epochs to the target against the synchronisation interval",
        tau_runs,
        (arithmetic.fig16, comparison.measure_interval),
        draw_bars(settings.FINAL_TARGET),
        ALT_BARS,
    ),
}
