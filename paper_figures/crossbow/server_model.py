"""The paper's server with 8 GPUs as a cost model, calibrated on printed throughputs (Figs. 13, 14b, 17)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paper_figures.crossbow import settings
from paper_figures.crossbow.comparison import stand_in
from paper_figures.crossbow.printed import value
from paper_figures.crossbow.readings import epochs, ids, require
from paper_figures.crossbow.targets import common_target
from suite.claims.measured import point
from suite.clock import Link
from suite.model_averaging.time_to_accuracy import Server
from suite.papers.artifact import Evidence, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def modelled(evidence: Evidence) -> Quantities:
    """Figs. 13a and 17 by the cost model, calibrated on Fig. 12a and on Fig. 17's m = 1 row."""
    server, batch = calibrated(), settings.CROSSBOW_BATCH
    note = "cost model: a and b of a + b m from Fig. 12a, synchronisation from Fig. 17's m = 1 and m = 4"
    speed = {m: server.throughput(batch, 8, m) for m in (1, 2, 4)}
    yield "throughput", point(speed[2] / speed[1], kind="proxy", note=note)
    yield "no-more-at-4", point(speed[4] / speed[2], kind="proxy", note=note)
    gains = [
        math.log(server.throughput(batch, 8, 1, b) / server.throughput(batch, 8, 1, a))
        for a, b in ((1, 2), (2, 4), (4, None))
    ]
    yield "rises-with-tau", point(gains, kind="proxy", note=note)


def calibrated() -> Server:
    """The paper's server as a :class:`suite.model_averaging.time_to_accuracy.Server`, from printed throughputs alone.

    One GPU: m learners take a + b m, with a + b = 1 and 4 / (a + 4 b) = 1.4 (Fig. 12a), in units of the iteration
    without synchronisation of Fig. 17 (512 images at 18,500 images/s). Synchronisation: what remains at m = 1 and,
    from the 27% at m = 4, its growth with m.
    """
    images = 8 * settings.CROSSBOW_BATCH
    alone = images / value("fig17/nosync")
    per_learner = (4 / value("fig12a/throughput") - 1) / 3
    task = {m: alone * (1 - per_learner + per_learner * m) for m in (1, 2, 4)}
    at_one = images / value("fig17/tau1") - alone
    at_four = task[4] * value("fig17/gain-m4") / 100
    growth = max(0.0, (at_four - at_one) / 3)
    fixed = max(0.0, at_one - growth)
    size = 4 * 469_114
    link = Link(0.0, 2 * 7 / 8 * size / fixed if fixed else math.inf)
    return Server(task, size, link, growth)


def draw_modelled(evidence: Evidence, figure: Figure) -> None:
    """Figs. 13a and 17 by the cost model of the paper's server, with the printed points."""
    axes = figure.subplots()
    server, batch = calibrated(), settings.CROSSBOW_BATCH
    taus: list[int | None] = [1, 2, 4, None]
    for m in (1, 2, 4):
        axes.plot(
            range(4), [server.throughput(batch, 8, m, tau) for tau in taus], marker="o", label=f"m = {m}, modelled"
        )
    axes.plot([0, 3], [value("fig17/tau1"), value("fig17/nosync")], "D", color="C6", label="printed, m = 1")
    axes.set_xticks(range(4), ["1", "2", "4", "none"])
    axes.set_xlabel("synchronisation interval tau")
    axes.set_ylabel("images/s on 8 GPUs")
    axes.legend()


def draw_learners_modelled(evidence: Evidence, figure: Figure) -> None:
    """Figs. 13a, 14b: throughput on 8 GPUs against learners per GPU, by the cost model of the paper's server."""
    axes = figure.subplots()
    server, batch = calibrated(), settings.CROSSBOW_BATCH
    speed = [server.throughput(batch, 8, m) for m in (1, 2, 4)]
    axes.plot((1, 2, 4), [s / speed[0] for s in speed], marker="o", label="8 GPUs, modelled")
    axes.plot([2], [value("fig13a/throughput")], "D", color="C6", label="8 GPUs, printed")
    axes.set_xticks((1, 2, 4))
    axes.set_xlabel("learners per GPU")
    axes.set_ylabel("throughput / one learner per GPU")
    axes.legend()


EIGHT_GPUS = {1: "sma 8", 2: "sma 16", 4: "sma 32"}  # learners per GPU -> replicas


def modelled_time(evidence: Evidence, target: float) -> dict[int, float]:
    """Time to accuracy on 8 GPUs over that of one learner each: measured epochs by modelled throughput."""
    present = {m: name for m, name in EIGHT_GPUS.items() if name in evidence.groups}
    require(len(present) > 1, f"runs with 8 and 16 replicas at {evidence.profile}")
    server, batch = calibrated(), settings.CROSSBOW_BATCH
    times = {}
    for m, name in present.items():
        found = epochs(evidence, name, target)
        times[m] = sum(found) / len(found) / server.throughput(batch, 8, m)
    return {m: time / times[1] for m, time in times.items()}


def eight_target(evidence: Evidence) -> float:
    return common_target(evidence, *(name for name in EIGHT_GPUS.values() if name in evidence.groups))


def measure_modelled_time(evidence: Evidence) -> Quantities:
    """Fig. 13c: the gain of two learners per GPU, and the best number of those that were trained."""
    target = eight_target(evidence)
    times = modelled_time(evidence, target)
    runs = ids(evidence, *(EIGHT_GPUS[m] for m in times))
    note = f"epochs to {100 * target:g}% of {stand_in(evidence, 'sma 8') or 'ResNet-32'}, throughput modelled"
    require(all(math.isfinite(time) for time in times.values()), f"runs that reach {100 * target:g}%")
    yield "tta", point(1 / times[2], kind="proxy", runs=runs, note=note)
    yield "m2-best", point(min(times, key=lambda m: times[m]), kind="proxy", runs=runs, note=note)


def draw_modelled_time(evidence: Evidence, figure: Figure) -> None:
    """Fig. 13c: time to accuracy on 8 GPUs against learners per GPU."""
    target = eight_target(evidence)
    times = modelled_time(evidence, target)
    axes = figure.subplots()
    axes.plot(list(times), list(times.values()), marker="o", label="measured epochs, modelled throughput")
    axes.plot([2], [1 / value("fig13c/tta")], "D", color="C6", label="printed")
    axes.set_xticks(list(times))
    axes.margins(y=0.2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("learners on each of 8 GPUs")
    axes.set_ylabel(f"time to {100 * target:g}% / one learner per GPU")
    axes.legend()
    if place := stand_in(evidence, "sma 8"):
        axes.set_title(f"Stand-in: {place}", fontsize="small")
