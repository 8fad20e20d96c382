"""Fig. 3: epochs that ResNet-32 takes to 80% test accuracy against the batch size of plain training."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import common_target, paired, require, several
from paper_figures.crossbow.tables import arrival_table
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.report.style import GRID

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SHARES = {"smoke": (1, 4), "reduced": (1, 4, 8, 16), "paper": (1, 4, 16, 32)}  # of the smallest batch in an update

SUPERLINEAR = 256  # images: "beyond a certain threshold (e.g. 256 in the example in Figure 3)"


def names(profile: str) -> list[str]:
    return [f"s-sgd {k}" for k in SHARES[profile]]


def runs(profile: str) -> settings.Groups:
    """The smallest batch is the run of Fig. 9(b), which goes its whole length; the others end with their answer."""
    smallest, *others = names(profile)
    return settings.groups(profile, smallest) | settings.groups(profile, *others, target=settings.TARGET)


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


def frame(evidence: Evidence) -> pd.DataFrame:
    return arrival_table(evidence, settings.TARGET)


def draw(evidence: Evidence, figure: Figure) -> None:
    """Bars by the images of an update; the paper's stretch of growth beyond proportion is shaded."""
    axes, table = figure.subplots(), frame(evidence)
    sizes = plots.bars(table, axes, "epochs", category="images")
    beyond = [place for place, size in enumerate(sizes) if size >= SUPERLINEAR]
    if beyond:
        axes.axvspan(
            beyond[0] - 0.45, len(sizes) - 0.4, color=GRID, alpha=0.15, linewidth=0, zorder=0,
            label=f"printed: more than in proportion beyond {SUPERLINEAR}",
        )  # fmt: skip
    axes.set(xlabel="images in an update", ylabel=f"epochs to {table['target'].iloc[0]:g}% test accuracy")
    plots.say_stand_in(axes, table["stand_in"].iloc[0])
    plots.legend_above(axes, 2)


ARTIFACTS = (
    Artifact(
        "crossbow/fig3",
        "Epochs of plain training to the target against batch size",
        runs,
        (measure_printed_target, measure_batches),
        draw,
        plots.ALT_BARS,
        frame=frame,
    ),
)
