"""Fig. 11: test accuracy of ResNet-32 and VGG-16 over time on 1 GPU (a, b) and 8; Crossbow leads early on too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import as_proxy, of_device, paired, seconds_ratio, several
from paper_figures.crossbow.tables import accuracy_table
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.catalogue import printed_value
from suite.report.style import PRINTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs_resnet32(profile: str) -> settings.Groups:
    """On one device: ResNet-32 itself at ``reduced`` too, if only for a few epochs and then with more methods."""
    if profile == "reduced":
        return settings.resnet32_part("sma 1", "sma 4", "s-sgd 4", "ea-sgd 4", "s-sgd 1")
    return settings.timed_groups(profile, "s-sgd 1", "sma 1", "sma 4")


def runs_vgg16(profile: str) -> settings.Groups:
    return settings.vgg16(profile)


def runs_eight_gpus(profile: str) -> settings.Groups:
    return settings.groups(profile, "s-sgd 8", "sma 8", "sma 16", "sma 32")


def early(evidence: Evidence, *levels: float) -> Quantities:
    """The lead at lower accuracies, as differences of log time; of log epochs where no times belong."""
    best = "sma 4" if "sma 4" in evidence.groups else "sma 3"
    timed = "throughput" in evidence.groups
    ratio = seconds_ratio(evidence, int(best.split()[1])) if timed else 1.0
    note = "log of times" if timed else "log of epochs, times left out"
    steps = several(
        [
            paired(evidence, best, "s-sgd 1", lambda x, y: math.log(y / (x * ratio)), note, target=level)
            for level in levels
        ]
    )
    yield "other-thresholds", of_device(evidence, steps) if timed else as_proxy(steps)


def measure_resnet32(evidence: Evidence) -> Quantities:
    return early(evidence, 0.6, 0.7, 0.8)


def measure_vgg16(evidence: Evidence) -> Quantities:
    return early(evidence, 0.4, 0.5, 0.6)


def measure_printed_reduction(_: Evidence) -> Quantities:
    slow, fast = (printed_value(f"crossbow/fig11c/{claim}") for claim in ("tensorflow-252s", "crossbow-92s"))
    yield "reduction-arithmetic", exact(100 * (slow - fast) / slow)


def draw_resnet32(evidence: Evidence, figure: Figure) -> None:
    plots.curves(evidence, figure.subplots(), settings.FINAL_TARGET)


def draw_eight_gpus(evidence: Evidence, figure: Figure) -> None:
    """Accuracy against epochs, and on an axis of seconds the two points that the paper prints."""
    axes, seconds = figure.subplots(1, 2, width_ratios=(3, 1), sharey=True)
    plots.curves(evidence, axes, settings.FINAL_TARGET)
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles, names, loc="upper left", bbox_to_anchor=(0, -0.16), ncols=3, fontsize="small")
    for marker, system in zip("os", ("crossbow-92s", "tensorflow-252s"), strict=True):
        name, value = system.partition("-")[0], printed_value(f"crossbow/fig11c/{system}")
        said = f"printed, {'TensorFlow' if name == 'tensorflow' else 'Crossbow'}: {value:g} s"
        seconds.plot(value, 80, marker, markersize=7, label=said, **PRINTED)
    seconds.set(xlim=(0, 300), xlabel="seconds on the paper's 8 GPUs")
    seconds.legend(loc="upper left", bbox_to_anchor=(0, -0.16), fontsize="small")


def draw_vgg16(evidence: Evidence, figure: Figure) -> None:
    plots.curves(evidence, figure.subplots(), settings.VGG_TARGET, instead="VGG-16")


ARTIFACTS = (
    Artifact(
        "crossbow/fig11a",
        "Test accuracy of ResNet-32 on one device",
        runs_resnet32,
        (measure_resnet32,),
        draw_resnet32,
        plots.ALT_CURVES,
        (7.4, 3.8),
        accuracy_table,
    ),
    Artifact(
        "crossbow/fig11b",
        "Test accuracy of VGG-16 on one device",
        runs_vgg16,
        (measure_vgg16,),
        draw_vgg16,
        plots.ALT_CURVES,
        (7.4, 3.8),
        accuracy_table,
    ),
    Artifact(
        "crossbow/fig11c",
        "Test accuracy of ResNet-32 with the replicas of 8 GPUs, against epochs",
        runs_eight_gpus,
        (measure_printed_reduction,),
        draw_eight_gpus,
        plots.ALT_CURVES + " Beside it the printed seconds to 80%.",
        (8.4, 4.2),
        accuracy_table,
    ),
    Artifact(
        "crossbow/fig11d",
        "Test accuracy of VGG-16 against epochs",
        runs_vgg16,
        draw=draw_vgg16,
        alt=plots.ALT_CURVES,
        frame=accuracy_table,
    ),
)
