"""Fig. 11: test accuracy of ResNet-32 and VGG-16 over time on 1 GPU (a, b) and 8; Crossbow leads early on too."""

from __future__ import annotations

import math
from typing import Any

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import accuracy_table, pair
from suite.papers.figure import Artifact, Figure, Frame, Groups, printed_value
from suite.report.style import PRINTED


def runs_resnet32(profile: str) -> Groups:
    """On one device: ResNet-32 itself at ``reduced`` too, if only for a few epochs and then with more methods."""
    if profile == "reduced":
        return settings.resnet32_part("sma 1", "sma 4", "s-sgd 4", "ea-sgd 4", "s-sgd 1")
    return settings.timed_groups(profile, "s-sgd 1", "sma 1", "sma 4")


PANELS = (
    ("a", "Test accuracy of ResNet-32 on one device", runs_resnet32, "", (7.4, 3.8)),
    ("b", "Test accuracy of VGG-16 on one device", settings.vgg16, "", (7.4, 3.8)),
    ("c", "Test accuracy of ResNet-32 with the replicas of 8 GPUs, against epochs",
     lambda profile: settings.groups(profile, "s-sgd 8", "sma 8", "sma 16", "sma 32"),
     " Beside it the printed seconds to 80%.", (8.4, 4.2)),
    ("d", "Test accuracy of VGG-16 against epochs", settings.vgg16, "", (6.4, 4.0)),
)  # fmt: skip
ARTIFACTS = A, B, C, D = tuple(
    Artifact(f"crossbow/fig11{letter}", title, runs, alt=plots.ALT_CURVES + beside, size=size)
    for letter, title, runs, beside, size in PANELS
)


log_lead = lambda a, b: math.log(b / a)
A.quantities["other-thresholds"] = pair("sma 4", "s-sgd 1", log_lead, "log of times", levels=(0.6, 0.7, 0.8), timed=4)
B.quantities["other-thresholds"] = pair(
    "sma 3", "s-sgd 1", log_lead, "log of epochs, times left out", levels=(0.4, 0.5, 0.6), shown=True
)
for panel in ARTIFACTS:
    panel.table(accuracy_table)
A.drawing(lambda frame, figure: plots.curves(frame, figure.subplots(), settings.FINAL_TARGET))
for panel in (B, D):
    panel.drawing(lambda frame, figure: plots.curves(frame, figure.subplots(), settings.VGG_TARGET, instead="VGG-16"))


@C.drawing
def draw_eight_gpus(frame: Frame, figure: Figure) -> None:
    """Accuracy against epochs, and on an axis of seconds the two points that the paper prints."""
    axes, seconds = figure.subplots(1, 2, width_ratios=(3, 1), sharey=True)
    plots.curves(frame, axes, settings.FINAL_TARGET)
    handles, names = axes.get_legend_handles_labels()
    several = axes.get_legend().get_title().get_text()
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, -0.16), "fontsize": "small"}
    axes.legend(handles, names, title=several, ncols=3, title_fontsize="small", alignment="left", **place)
    for marker, system in zip("os", ("crossbow-92s", "tensorflow-252s"), strict=True):
        name, value = system.partition("-")[0], printed_value(f"crossbow/fig11c/{system}")
        said = f"printed, {'TensorFlow' if name == 'tensorflow' else 'Crossbow'}: {value:g} s"
        seconds.plot(value, 80, marker, markersize=7, label=said, **PRINTED)
    seconds.set(xlim=(0, 300), xlabel="seconds on the paper's 8 GPUs")
    seconds.legend(**place)
