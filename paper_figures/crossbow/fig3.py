"""Fig. 3: epochs that ResNet-32 takes to 80% test accuracy against the batch size of plain training."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import arrival_table, common_target, described, paired, refuse_floor, steps
from suite.claims.intervals import Interval
from suite.papers.figure import Figure, Frame, Groups
from suite.report.style import GRID

SHARES = {"smoke": (1, 4), "reduced": (1, 4, 8, 16), "paper": (1, 4, 8, 16)}  # of the smallest batch in an update
BATCHES = ("smallest", "second", "third", "largest")  # groups
SUPERLINEAR = 256  # images: "beyond a certain threshold (e.g. 256 in the example in Figure 3)"


def runs(profile: str) -> Groups:
    """The smallest batch is the run of Fig. 9(b), which goes its whole length; the others end with their answer."""
    names = dict(zip(BATCHES, (f"s-sgd {k}" for k in SHARES[profile]), strict=False))
    first, *others = names.values()
    found = settings.groups(profile, first) | settings.groups(profile, *others, target=settings.TARGET)
    return settings.called(found, names)


PANEL = plots.bar_panel("fig3", "Epochs of plain training to the target against batch size", runs)


def noted(text: str, frame: Frame) -> str:
    return described(frame, BATCHES, common_target(frame, *BATCHES), text)


@PANEL.quantity("rises", BATCHES, note=partial(noted, ""))
def rises(frame: Frame) -> list[Interval]:
    """Steps of the epochs from each batch to the next larger one, paired by seed."""
    target = common_target(frame, *BATCHES)
    refuse_floor(frame, BATCHES, target)
    return [paired(frame, a, b, steps, target) for a, b in pairwise(BATCHES)]


@PANEL.quantity("threshold", BATCHES, note=partial(noted, "second to largest batch"))
def exponent(frame: Frame) -> Interval:
    """Slope of log epochs against log batch beyond the smallest, paired by seed."""
    _, first, _, last = SHARES[frame.profile]
    slope = lambda x, y: math.log(y / x) / math.log(last / first)
    return paired(frame, BATCHES[1], BATCHES[-1], slope, common_target(frame, *BATCHES))


table = PANEL.table(partial(arrival_table, printed=settings.TARGET))


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Bars by the images of an update; the paper's stretch of growth beyond proportion is shaded."""
    axes, rows = figure.subplots(), table(frame)
    sizes = plots.bars(rows, axes, "epochs", category="images")
    beyond = [place for place, size in enumerate(sizes) if size > SUPERLINEAR]
    if beyond:
        axes.axvspan(
            beyond[0] - 0.45, len(sizes) - 0.4, color=GRID, alpha=0.15, linewidth=0, zorder=0,
            label=f"printed: more than in proportion beyond {SUPERLINEAR}",
        )  # fmt: skip
    axes.set_xlabel("images in an update")
    plots.finish(axes, rows, "epochs to {} test accuracy", 2)
