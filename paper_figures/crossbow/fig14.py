"""Fig. 14: the auto-tuner stops where throughput no longer rises, which is where time to accuracy is least."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import common_target, epochs, fastest, ids, on_gpu, require, stand_in
from suite.claims.measured import point
from suite.papers.artifact import Artifact, Evidence, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from suite.runs.store import Run


def runs_resnet32(profile: str) -> settings.Groups:
    network = settings.NETWORK[profile]
    trained = settings.groups(profile, "sma 1", "sma 2", "sma 4")
    return {network: settings.throughput(profile)[network], **trained}


def runs_vgg16(profile: str) -> settings.Groups:
    return {"crossbow_vgg16": settings.throughput(profile)["crossbow_vgg16"]} if profile == "paper" else {}


def grade(run: Run, network: str) -> tuple[str, str]:
    """The kind of evidence that a throughput run is about a network on a GPU, and a note that says so."""
    name, gpu = run.spec.settings["model"], on_gpu(run)
    note = f"{name} on {'a GPU' if gpu else 'a CPU'}; tuner {run.results['tuned_learners']}"
    return "measured" if gpu and name == network else "proxy", note


def trained_counts(evidence: Evidence, run: Run) -> list[int]:
    """The numbers of learners that were both timed and trained."""
    return [k for k in run.spec.settings["learners"] if f"sma {k}" in evidence.groups]


def measure_resnet32(evidence: Evidence) -> Quantities:
    """Where throughput stops rising, and where time to accuracy is least."""
    run = evidence.run(settings.NETWORK[evidence.profile])
    made, note = grade(run, "crossbow_resnet32")
    yield "saturation", point(fastest(run), kind=made, runs=[run.id], note=note)
    counts = trained_counts(evidence, run)
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


def measure_vgg16(evidence: Evidence) -> Quantities:
    """Where throughput stops rising."""
    require(bool(evidence.groups), "throughput runs of crossbow_vgg16")
    run = evidence.run("crossbow_vgg16")
    made, note = grade(run, "crossbow_vgg16")
    yield "saturation", point(fastest(run), kind=made, runs=[run.id], note=note)


def draw_resnet32(evidence: Evidence, figure: Figure) -> None:
    """Throughput against learners, and the time to accuracy that follows where epochs were measured."""
    run = evidence.run(settings.NETWORK[evidence.profile])
    counts = trained_counts(evidence, run)
    left, right = figure.subplots(1, 2)
    plots.throughput(evidence, left)
    target = common_target(evidence, *(f"sma {k}" for k in counts), printed=settings.FINAL_TARGET)
    means = []
    for k in counts:
        times = [value / median(run.results[f"over_one_{k}"]) for value in epochs(evidence, f"sma {k}", target)]
        right.plot([k] * len(times), times, "o", color="C0")
        means.append(sum(times) / len(times))
    right.plot(counts, means, color="C0")
    right.set_xticks(counts)
    right.set_xlim(counts[0] - 0.5, counts[-1] + 0.5)
    right.margins(y=0.2)
    right.set_ylim(bottom=0)
    right.set_xlabel("learners k")
    right.set_ylabel(f"time to {100 * target:g}%, in epochs of one learner")
    plots.say_stand_in(right, stand_in(evidence, f"sma {counts[0]}"))


def draw_eight_gpus(evidence: Evidence, figure: Figure) -> None:
    plots.throughput_on_eight_gpus(figure)


def draw_vgg16(evidence: Evidence, figure: Figure) -> None:
    plots.throughput(evidence, figure.subplots())


ARTIFACTS = (
    Artifact(
        "crossbow/fig14a",
        "Throughput of ResNet-32 on one device against learners",
        runs_resnet32,
        (measure_resnet32,),
        draw_resnet32,
        "Throughput against learners, relative to one, and time to accuracy against learners.",
        (8.0, 4.0),
    ),
    Artifact(
        "crossbow/fig14b",
        "Throughput of ResNet-32 on 8 GPUs against learners, modelled",
        draw=draw_eight_gpus,
        alt=plots.ALT_EIGHT_GPUS,
    ),
    Artifact(
        "crossbow/fig14c",
        "Throughput of VGG-16 on one device against learners",
        runs_vgg16,
        (measure_vgg16,),
        draw_vgg16,
        plots.ALT_THROUGHPUT,
    ),
    Artifact("crossbow/fig14d", "Time to accuracy and throughput of VGG-16 on 8 GPUs"),
)
