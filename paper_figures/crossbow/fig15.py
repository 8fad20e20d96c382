"""Fig. 15: synchronous model averaging with momentum against elastic averaging, on one GPU and on 8."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import (
    common_target,
    described,
    epochs,
    ids,
    kind,
    less_time,
    paired,
    require,
    spread,
)
from suite.claims.measured import exact
from suite.papers.artifact import Artifact, Evidence, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> settings.Groups:
    """Few and many learners; at ``reduced`` the few with ResNet-32 itself too."""
    found = settings.groups(profile, "sma 4", "ea-sgd 4", "sma 16", "ea-sgd 16")
    if profile == "reduced":
        part = settings.resnet32_part("sma 4", "ea-sgd 4")
        found |= {f"{plots.ON_RESNET32}{name}": runs for name, runs in part.items()}
    return found


def measure_learners(_: Evidence) -> Quantities:
    yield "learners-16", exact(8 * 2)


def measure_epochs(evidence: Evidence) -> Quantities:
    """In epochs: both methods take the same time per iteration."""
    printed = settings.FINAL_TARGET
    one_device = ("sma 4", "ea-sgd 4")
    on_resnet32 = [plots.ON_RESNET32 + name for name in one_device]
    a, b = on_resnet32 if on_resnet32[0] in evidence.groups else one_device
    yield "1gpu", paired(evidence, a, b, less_time, "in epochs", printed=printed)
    require("sma 16" in evidence.groups, f"16 replicas at {evidence.profile}")
    yield "8gpu", paired(evidence, "sma 16", "ea-sgd 16", less_time, "in epochs", printed=printed)
    names = ("sma 4", "ea-sgd 4", "sma 16", "ea-sgd 16")
    target = common_target(evidence, *names, printed=printed)
    few, many = (
        [
            less_time(x, y)
            for x, y in zip(
                epochs(evidence, f"sma {k}", target), epochs(evidence, f"ea-sgd {k}", target), strict=True
            )
        ]
        for k in (4, 16)
    )
    growth = [b - a if math.isfinite(a) and math.isfinite(b) else math.inf for a, b in zip(few, many, strict=True)]
    yield "gap-grows", spread(growth, kind(evidence), ids(evidence, *names), described(evidence, "sma 4", target))


def draw(evidence: Evidence, figure: Figure) -> None:
    plots.bars(evidence, figure, settings.FINAL_TARGET)


ARTIFACTS = (
    Artifact(
        "crossbow/fig15",
        "Averaging with momentum against elastic averaging",
        runs,
        (measure_learners, measure_epochs),
        draw,
        plots.ALT_BARS,
    ),
)
