"""Fig. 3: epochs that ResNet-32 takes to 80% test accuracy against the batch size of plain training."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import common_target, paired, require, several
from suite.claims.measured import exact
from suite.papers.artifact import Artifact, Evidence, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = {"smoke": (1, 4), "reduced": (1, 4, 8, 16), "paper": (1, 4, 16, 32)}  # of the smallest batch in an update


def names(profile: str) -> list[str]:
    return [f"s-sgd {k}" for k in SHARES[profile]]


def runs(profile: str) -> settings.Groups:
    return settings.groups(profile, *names(profile))


def measure_printed_target(_: Evidence) -> Quantities:
    yield "target", exact(100 * settings.TARGET)


def measure_batches(evidence: Evidence) -> Quantities:
    """Epochs against batch size, paired by seed: each step, and the slope of log epochs beyond the first."""
    shares, groups = SHARES[evidence.profile], names(evidence.profile)
    require(len(shares) == 4, "four batch sizes")
    target = common_target(evidence, *groups)
    yield "rises", several([paired(evidence, a, b, lambda x, y: y - x, target=target) for a, b in pairwise(groups)])
    first, last = shares[1], shares[-1]
    yield (
        "threshold",
        paired(
            evidence,
            groups[1],
            groups[-1],
            lambda x, y: math.log(y / x) / math.log(last / first),
            f"batch {first} to {last} times the smallest",
            target=target,
        ),
    )


def draw(evidence: Evidence, figure: Figure) -> None:
    plots.bars(evidence, figure, settings.TARGET, batches=True)


ARTIFACTS = (
    Artifact(
        "crossbow/fig3",
        "Epochs of plain training to the target against batch size",
        runs,
        (measure_printed_target, measure_batches),
        draw,
        plots.ALT_BARS,
    ),
)
