"""Fig. 13: learners on each of 8 GPUs: throughput, epochs, and time to accuracy, best with two.

8, 16 and 32 replicas of one run stand for 8 GPUs with 1, 2 and 4 learners; throughput is that of the cost model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, server_model, settings
from paper_figures.crossbow.readings import common_target, epochs, ids, paired, require, stand_in
from suite.claims.measured import exact, point
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EIGHT_GPUS = {1: "sma 8", 2: "sma 16", 4: "sma 32"}  # learners per GPU -> replicas


def runs(profile: str) -> settings.Groups:
    return settings.groups(profile, *EIGHT_GPUS.values())


def measure_learners(_: Evidence) -> Quantities:
    yield "learners-32", exact(8 * 4)


def measure_throughput(_: Evidence) -> Quantities:
    """By the cost model of the paper's server."""
    speed = {m: server_model.throughput(m) for m in (1, 2, 4)}
    yield "throughput", point(speed[2] / speed[1], kind="proxy", note=server_model.CALIBRATION)
    yield "no-more-at-4", point(speed[4] / speed[2], kind="proxy", note=server_model.CALIBRATION)


def measure_epochs(evidence: Evidence) -> Quantities:
    require("sma 16" in evidence.groups, f"16 replicas at {evidence.profile}")
    yield "m2-neutral", paired(evidence, "sma 8", "sma 16", lambda x, y: y / x)
    require("sma 32" in evidence.groups, f"32 replicas at {evidence.profile}")
    yield "m4-worse", paired(evidence, "sma 16", "sma 32", lambda x, y: y - x)


def target_of(evidence: Evidence) -> float:
    """The accuracy (share) at which the numbers of replicas are compared."""
    return common_target(evidence, *(name for name in EIGHT_GPUS.values() if name in evidence.groups))


def time_to(evidence: Evidence, target: float) -> dict[int, float]:
    """Time to accuracy over that of one learner per GPU: measured epochs by modelled throughput."""
    present = {m: name for m, name in EIGHT_GPUS.items() if name in evidence.groups}
    require(len(present) > 1, f"runs with 8 and 16 replicas at {evidence.profile}")
    times = {}
    for m, name in present.items():
        found = epochs(evidence, name, target)
        times[m] = sum(found) / len(found) / server_model.throughput(m)
    return {m: time / times[1] for m, time in times.items()}


def measure_time(evidence: Evidence) -> Quantities:
    """The gain of two learners per GPU, and the best number of those that were trained."""
    target = target_of(evidence)
    times = time_to(evidence, target)
    trained = ids(evidence, *(EIGHT_GPUS[m] for m in times))
    note = f"epochs to {100 * target:g}% of {stand_in(evidence, 'sma 8') or 'ResNet-32'}, throughput modelled"
    require(all(math.isfinite(time) for time in times.values()), f"runs that reach {100 * target:g}%")
    yield "tta", point(1 / times[2], kind="proxy", runs=trained, note=note)
    yield "m2-best", point(min(times, key=lambda m: times[m]), kind="proxy", runs=trained, note=note)


def draw_throughput(evidence: Evidence, figure: Figure) -> None:
    plots.throughput_on_eight_gpus(figure)


def draw_epochs(evidence: Evidence, figure: Figure) -> None:
    plots.bars(evidence, figure, settings.TARGET)


def draw_time(evidence: Evidence, figure: Figure) -> None:
    target = target_of(evidence)
    times = time_to(evidence, target)
    axes = figure.subplots()
    axes.plot(list(times), list(times.values()), marker="o", label="measured epochs, modelled throughput")
    axes.plot([2], [1 / printed_value("crossbow/fig13c/tta")], "D", color="C6", label="printed")
    axes.set_xticks(list(times))
    axes.margins(y=0.2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("learners on each of 8 GPUs")
    axes.set_ylabel(f"time to {100 * target:g}% / one learner per GPU")
    axes.legend()
    plots.say_stand_in(axes, stand_in(evidence, "sma 8"))


ARTIFACTS = (
    Artifact(
        "crossbow/fig13a",
        "Throughput against learners on 8 GPUs, modelled",
        measures=(measure_learners, measure_throughput),
        draw=draw_throughput,
        alt=plots.ALT_EIGHT_GPUS,
    ),
    Artifact(
        "crossbow/fig13b",
        "Epochs to the target with the replicas of 8 GPUs",
        runs,
        (measure_epochs,),
        draw_epochs,
        plots.ALT_BARS,
    ),
    Artifact(
        "crossbow/fig13c",
        "Time to the target on 8 GPUs against learners per GPU, throughput modelled",
        runs,
        (measure_time,),
        draw_time,
        "Time to accuracy against learners per GPU, relative to one, with the printed value.",
    ),
)
