"""Figs. 2 and 3: what the batch size of plain training costs.

Fig. 2: throughput against GPUs when one batch is cut over them; a small batch leaves each too little to do. Fig. 3:
epochs that ResNet-32 takes to 80% test accuracy against the batch size.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import (
    arrival_table,
    common_target,
    described,
    network,
    of_experiment,
    paired,
    steps,
)
from suite.claims.intervals import Interval
from suite.papers.figure import Artifact, Figure, Frame, Groups
from suite.report.style import GRID, LINES

FIG2 = Artifact("crossbow/fig2", "Throughput of one batch cut over devices", settings.throughput)


@FIG2.drawing
def draw_speed(frame: Frame, figure: Figure) -> None:
    """Speed-up against devices for several batch sizes, below the line of linear growth."""
    names = of_experiment(frame, "crossbow/throughput")
    axes, most = figure.subplots(), 1
    for position, name in enumerate(names):
        run = frame.run(name)
        table = run.curve("seconds").query("side == 'batch'")
        seconds = table.groupby("learners")["seconds"].median()
        for marker, whole in zip("os^", (2, 4, 8), strict=True):
            devices = [g for g in (1, 2, 4, 8) if whole % g == 0 and whole // g in seconds.index]
            if whole in seconds.index:
                speed = [float(seconds[whole] / seconds[whole // g]) for g in devices]
                title = f"{network(run)}, batch {whole * run.spec.settings['batch']}"
                axes.plot(devices, speed, marker=marker, color=f"C{position}", linestyle=LINES[position], label=title)
                most = max(most, *devices)
    axes.plot([1, most], [1, most], color="0.5", linewidth=0.8, linestyle=":", label="linear")
    axes.set_xticks([g for g in (1, 2, 4, 8) if g <= most])
    axes.set_title(
        "Stand-in: parts of a batch timed on one device, for TensorFlow's ResNet-32 on 8 GPUs", fontsize="small"
    )
    axes.set(xlabel="devices", ylabel="throughput / one device's, exchange left out")
    axes.legend()


SHARES = {"smoke": (1, 4), "reduced": (1, 4, 8, 16), "paper": (1, 4, 8, 16)}  # of the smallest batch in an update
BATCHES = ("smallest", "second", "third", "largest")  # groups
SUPERLINEAR = 256  # images: "beyond a certain threshold (e.g. 256 in the example in Figure 3)"


def runs(profile: str) -> Groups:
    """The smallest batch is the run of Fig. 9(b), which goes its whole length; the others end with their answer."""
    names = dict(zip(BATCHES, (f"s-sgd {k}" for k in SHARES[profile]), strict=False))
    first, *others = names.values()
    found = settings.groups(profile, first) | settings.groups(profile, *others, target=settings.TARGET)
    return settings.called(found, names)


FIG3 = plots.bar_panel("fig3", "Epochs of plain training to the target against batch size", runs)


def noted(text: str, frame: Frame) -> str:
    return described(frame, BATCHES, common_target(frame, *BATCHES), text)


@FIG3.quantity("rises", BATCHES, note=partial(noted, ""))
def rises(frame: Frame) -> list[Interval]:
    """Steps of the epochs from each batch to the next larger one, paired by seed."""
    target = common_target(frame, *BATCHES)
    return [paired(frame, a, b, steps, target) for a, b in pairwise(BATCHES)]


@FIG3.quantity("threshold", BATCHES, note=partial(noted, "second to largest batch"))
def exponent(frame: Frame) -> Interval:
    """Slope of log epochs against log batch beyond the smallest, paired by seed."""
    _, first, _, last = SHARES[frame.profile]
    slope = lambda x, y: math.log(y / x) / math.log(last / first)
    return paired(frame, BATCHES[1], BATCHES[-1], slope, common_target(frame, *BATCHES))


table = FIG3.table(partial(arrival_table, printed=settings.TARGET))


@FIG3.drawing
def draw_epochs(frame: Frame, figure: Figure) -> None:
    """Bars by the images of an update; the paper's stretch of growth beyond proportion is shaded."""
    axes, rows = figure.subplots(), table(frame)
    sizes = plots.bars(rows, axes, "epochs", category="images")
    beyond = [place for place, size in enumerate(sizes) if size >= SUPERLINEAR]
    if beyond:
        axes.axvspan(
            beyond[0] - 0.45, len(sizes) - 0.4, color=GRID, alpha=0.15, linewidth=0, zorder=0,
            label=f"printed: more than in proportion beyond {SUPERLINEAR}",
        )  # fmt: skip
    axes.set_xlabel("images in an update")
    plots.finish(axes, rows, "epochs to {} test accuracy", 2)
