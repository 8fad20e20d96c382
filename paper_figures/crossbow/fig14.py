"""Fig. 14: the auto-tuner stops where throughput no longer rises, which is where time to accuracy is least."""

from __future__ import annotations

import math
from functools import partial
from statistics import fmean, median
from typing import Any

from paper_figures.crossbow import plots, readings, server, settings
from suite.papers.figure import Artifact, Figure, Frame, Groups, Missing, printed_value, sns
from suite.report.style import PALETTE


def runs_vgg16(profile: str) -> Groups:
    found = settings.throughput(profile) if profile == "paper" else {}
    return settings.called(found, {readings.THROUGHPUT: "crossbow_vgg16"})


A = Artifact(
    "crossbow/fig14a",
    "Throughput of ResNet-32 on one device against learners",
    lambda profile: settings.timed_groups(profile, "sma 1", "sma 2", "sma 4"),
    size=(8.0, 4.2),
)
B = Artifact("crossbow/fig14b", "Throughput of ResNet-32 on 8 GPUs against learners, modelled")
C = Artifact("crossbow/fig14c", "Throughput of VGG-16 on one device against learners", runs_vgg16)
D = Artifact("crossbow/fig14d", "Time to accuracy and throughput of VGG-16 on 8 GPUs")


def noted(frame: Frame) -> str:
    run = frame.run(readings.THROUGHPUT)
    return f"{readings.on_device(run)}; tuner {run.results['tuned_learners']}"


@A.quantity("saturation", [readings.THROUGHPUT], note=noted)
@C.quantity("saturation", [readings.THROUGHPUT], note=noted)
def saturation(frame: Frame) -> float:
    """The number of learners with the largest throughput."""
    return float(readings.fastest(readings.of_gpu(frame)))


@A.quantity("auto-tuner-picks-best", [readings.THROUGHPUT, "sma 1", "sma 4"], beside=("sma 2",), note=noted)
def picks_best(frame: Frame) -> float:
    """Whether the tuner ends within one of the number of learners with the least time to accuracy."""
    run = readings.of_gpu(frame)
    both = [k for k in run.spec.settings["learners"] if frame.whole(f"sma {k}")]  # timed and trained
    if frame.profile == "paper" and 2 not in both:
        raise Missing("lacks runs with two learners")
    groups = [f"sma {k}" for k in both]
    target = readings.common_target(frame, *groups, printed=settings.FINAL_TARGET)
    readings.refuse_floor(frame, groups, target)
    times = {
        k: fmean(readings.epochs(frame, f"sma {k}", target)) / median(run.results[f"over_one_{k}"]) for k in both
    }
    if not any(math.isfinite(time) for time in times.values()):
        raise Missing("lacks a time to accuracy")
    best = min(times, key=lambda k: times[k])
    return float(abs(run.results["tuned_learners"] - best) <= 1)


arrivals = A.table(partial(readings.timed_table, printed=settings.FINAL_TARGET))


@A.drawing
def draw_resnet32(frame: Frame, figure: Figure) -> None:
    """Throughput against learners, relative to one, and time to accuracy against learners."""
    left, right = figure.subplots(1, 2)
    plots.throughput(frame, left)
    table = arrivals(frame)
    looks: dict[str, Any] = {"x": "learners", "y": "time", "color": PALETTE[0], "ax": right}
    sns.lineplot(table, errorbar=("pi", 100), marker="o", label="mean and range of the seeds", **looks)
    for axes, claim in ((left, "saturation"), (right, "tta-minimum")):
        best = printed_value(f"crossbow/fig14a/{claim}")
        axes.set_ylim(0)
        plots.printed_line(axes, best, f"printed best: m = {best:g}")
        axes.set(xticks=[1, 2, 3, 4], xlabel="learners on one device, m")
        plots.legend_above(axes, 1)
    right.set_ylabel(f"time to {table['target'].iloc[0]:g}%, in epochs of one learner")
    plots.say_least(right, table)
    plots.say_stand_in(right, table["stand_in"].iloc[0])
    plots.legend_above(right, 1)


B.table(lambda frame: server.every_iteration())


@B.drawing
def draw_eight_gpus(frame: Frame, figure: Figure) -> None:
    """Modelled throughput on eight GPUs against learners per GPU, with the printed value."""
    axes = figure.subplots()
    plots.on_eight_gpus(axes, "images_per_second", "images/s on 8 GPUs")
    axes.set_ylim(0, 24_000)
    best = printed_value("crossbow/fig14b/saturation")
    plots.printed_line(axes, best, f"printed: no more beyond m = {best:g}")
    axes.set_title("8 GPUs not run: a cost model, part of it solved from the paper", fontsize="small")
    plots.legend_above(axes, 2)


C.table(readings.throughput_table)


@C.drawing
def draw_vgg16(frame: Frame, figure: Figure) -> None:
    """Throughput against learners, relative to one learner, with the printed value as an open marker."""
    plots.throughput(frame, figure.subplots())
