"""Throughput: learners on one device measured, on 8 GPUs modelled (Figs. 2, 12a, 13a, 13c, 14, 17)."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

from paper_figures.crossbow import arithmetic, settings
from paper_figures.crossbow.readings import epochs, ids, on_gpu, require
from paper_figures.crossbow.server_model import (
    EIGHT_GPUS,
    draw_learners_modelled,
    draw_modelled,
    draw_modelled_time,
    measure_modelled_time,
    modelled,
)
from paper_figures.crossbow.targets import common_target
from paper_figures.crossbow.throughput_plots import draw_saturation, draw_split, draw_throughput
from suite.claims.measured import Measured, interval, point
from suite.papers.artifact import Artifact, Evidence, Quantities

if TYPE_CHECKING:
    from suite.runs.store import Run


def fastest(run: Run) -> int:
    """The number of learners with the largest median throughput, those within 2% of it counted as the same."""
    counts = run.spec.settings["learners"]
    speed = {k: median(run.results[f"over_one_{k}"]) for k in counts}
    top = max(speed.values())
    return min(k for k in counts if speed[k] >= 0.98 * top)


def vectorised(run: Run, learners: int) -> str:
    """What computing all learners at once would give, or that the network does not allow it."""
    if why := run.results.get("refused_vectorised"):
        return f"not vectorised, since {why}"
    together = median(run.results[f"vectorised_over_looped_{learners}"])
    return f"vectorised {together:.2f} times as fast as one after another"


def speed_up(run: Run, learners: int) -> Measured:
    """Throughput over one learner's, repeats interleaved; the interval is that of the repeats."""
    values = run.results[f"over_one_{learners}"]
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    made = "measured" if on_gpu(run) else "proxy"
    large = median(run.results[f"over_batch_{learners}"])
    note = (
        f"{run.spec.settings['model']}, {'GPU' if on_gpu(run) else 'CPU'}, {run.results[f'path_{learners}']}; "
        f"{large:.2f} times as fast as one learner with {learners} times the batch; {vectorised(run, learners)}"
    )
    return interval(median(values), low, high, kind=made, n=len(values), runs=[run.id], note=note)


def measure_speed(evidence: Evidence) -> Quantities:
    """Fig. 12a: throughput with four learners, and the best of all networks and counts."""
    require(bool(evidence.groups), "throughput runs")
    runs = {name: evidence.run(name) for name in evidence.groups}
    main = runs.get("crossbow_resnet32") or next(iter(runs.values()))
    yield "throughput", speed_up(main, 4)
    yield "intro-1p8", max((speed_up(run, fastest(run)) for run in runs.values()), key=lambda m: m.values[0])


def measure_saturation(network: str, group: str | None = None) -> Callable[[Evidence], Quantities]:
    """Fig. 14: where throughput stops rising, and where time to accuracy is least."""

    def measure(evidence: Evidence) -> Quantities:
        name = network if network in evidence.groups else next(iter(evidence.groups), "")
        require(bool(name), f"throughput runs of {network}")
        run = evidence.run(name)
        gpu = on_gpu(run) and name == network
        made = "measured" if gpu else "proxy"
        note = f"{name} on {'a GPU' if on_gpu(run) else 'a CPU'}; tuner {run.results['tuned_learners']}"
        yield "saturation", point(fastest(run), kind=made, runs=[run.id], note=note)
        if group is None:
            return
        counts = [k for k in run.spec.settings["learners"] if f"sma {k}" in evidence.groups]
        target = common_target(evidence, *(f"sma {k}" for k in counts), printed=settings.FINAL_TARGET)
        times = {}
        for k in counts:
            mean = sum(epochs(evidence, f"sma {k}", target)) / len(evidence.groups[f"sma {k}"])
            times[k] = mean / median(run.results[f"over_one_{k}"])
        require(len(times) > 1 and any(math.isfinite(t) for t in times.values()), "times to accuracy of several m")
        best = min(times, key=lambda k: times[k])
        sources = [run.id, *ids(evidence, *(f"sma {k}" for k in times))]
        yield "tta-minimum", point(best, kind=made, runs=sources, note=note)
        agree = abs(run.results["tuned_learners"] - best) <= 1
        yield "auto-tuner-picks-best", point(float(agree), kind=made, runs=sources, note=note)

    return measure


def fig14_runs(profile: str) -> settings.Groups:
    name = {"smoke": "digits_lenet", "reduced": "crossbow_lenet", "paper": "crossbow_resnet32"}[profile]
    return {name: settings.throughput(profile)[name], **settings.groups(profile, "sma 1", "sma 2", "sma 4")}


def fig14c_runs(profile: str) -> settings.Groups:
    return {"crossbow_vgg16": settings.throughput(profile)["crossbow_vgg16"]} if profile == "paper" else {}


ALT_SPEED = "Throughput against learners, relative to one learner."
ALT_MODEL = "Modelled throughput on 8 GPUs against the synchronisation interval with the two printed values."

ARTIFACTS = {
    "fig2": Artifact(
        "crossbow/fig2",
        "Throughput of one batch cut over devices",
        settings.throughput,
        (arithmetic.fig2,),
        draw_split,
        "Speed-up against devices for several batch sizes, below the line of linear growth.",
    ),
    "fig12a": Artifact(
        "crossbow/fig12a",
        "Throughput against learners on one device",
        settings.throughput,
        (measure_speed,),
        draw_throughput,
        ALT_SPEED,
    ),
    "fig13a": Artifact(
        "crossbow/fig13a",
        "Throughput against learners on 8 GPUs, modelled",
        measures=(arithmetic.fig13a, modelled),
        draw=draw_learners_modelled,
        alt="Modelled throughput on eight GPUs against learners per GPU, with the printed value.",
    ),
    "fig13c": Artifact(
        "crossbow/fig13c",
        "Time to the target on 8 GPUs against learners per GPU, throughput modelled",
        lambda profile: settings.groups(profile, *EIGHT_GPUS.values()),
        (measure_modelled_time,),
        draw_modelled_time,
        "Time to accuracy against learners per GPU, relative to one, with the printed value.",
    ),
    "fig14a": Artifact(
        "crossbow/fig14a",
        "Throughput of ResNet-32 on one device against learners",
        fig14_runs,
        (measure_saturation("crossbow_resnet32", "sma"),),
        draw_saturation,
        "Throughput against learners, relative to one, and time to accuracy against learners.",
        (8.0, 4.0),
    ),
    "fig14b": Artifact(
        "crossbow/fig14b",
        "Throughput of ResNet-32 on 8 GPUs against learners, modelled",
        draw=draw_learners_modelled,
        alt="Modelled throughput on eight GPUs against learners per GPU, with the printed value.",
    ),
    "fig14c": Artifact(
        "crossbow/fig14c",
        "Throughput of VGG-16 on one device against learners",
        fig14c_runs,
        (measure_saturation("crossbow_vgg16"),),
        draw_throughput,
        ALT_SPEED,
    ),
    "fig14d": Artifact("crossbow/fig14d", "Time to accuracy and throughput of VGG-16 on 8 GPUs"),
    "fig17": Artifact(
        "crossbow/fig17",
        "Throughput on 8 GPUs against the synchronisation interval, modelled",
        measures=(arithmetic.fig17, modelled),
        draw=draw_modelled,
        alt=ALT_MODEL,
    ),
}
