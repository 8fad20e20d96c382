"""Fig. 14: the auto-tuner stops where throughput no longer rises, which is where time to accuracy is least."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import common_target, epochs, fastest, ids, on_gpu, require
from paper_figures.crossbow.tables import arrival_table, modelled_table, throughput_table
from suite.claims.estimate import point
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.catalogue import printed_value
from suite.report.style import PALETTE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from suite.runs.store import Run


def runs_resnet32(profile: str) -> settings.Groups:
    network = settings.NETWORK[profile]
    trained = settings.groups(profile, "sma 1", "sma 2", "sma 4")
    return {network: settings.throughput(profile)[network], **trained}


def runs_vgg16(profile: str) -> settings.Groups:
    return {"crossbow_vgg16": settings.throughput(profile)["crossbow_vgg16"]} if profile == "paper" else {}


def elsewhere(run: Run, network: str) -> tuple[bool, str]:
    """Whether a throughput run is of another network, or of no GPU, and a note that says so."""
    name, gpu = run.spec.settings["model"], on_gpu(run)
    note = f"{name} on {'a GPU' if gpu else 'a CPU'}; tuner {run.results['tuned_learners']}"
    return not gpu or name != network, note


def trained_counts(evidence: Evidence, run: Run) -> list[int]:
    """The numbers of learners that were both timed and trained."""
    return [k for k in run.spec.settings["learners"] if f"sma {k}" in evidence.groups]


def measure_resnet32(evidence: Evidence) -> Quantities:
    """Where throughput stops rising, and where time to accuracy is least."""
    run = evidence.run(settings.NETWORK[evidence.profile])
    proxy, note = elsewhere(run, "crossbow_resnet32")
    yield "saturation", point(fastest(run), runs=[run.id], note=note, proxy=proxy)
    counts = trained_counts(evidence, run)
    target = common_target(evidence, *(f"sma {k}" for k in counts), printed=settings.FINAL_TARGET)
    times = {}
    for k in counts:
        mean = sum(epochs(evidence, f"sma {k}", target)) / len(evidence.groups[f"sma {k}"])
        times[k] = mean / median(run.results[f"over_one_{k}"])
    require(len(times) > 1 and any(math.isfinite(t) for t in times.values()), "times to accuracy of several m")
    best = min(times, key=lambda k: times[k])
    sources = [run.id, *ids(evidence, *(f"sma {k}" for k in times))]
    agree = abs(run.results["tuned_learners"] - best) <= 1
    yield "auto-tuner-picks-best", point(float(agree), runs=sources, note=note, proxy=proxy)


def measure_vgg16(evidence: Evidence) -> Quantities:
    """Where throughput stops rising."""
    require(bool(evidence.groups), "throughput runs of crossbow_vgg16")
    run = evidence.run("crossbow_vgg16")
    proxy, note = elsewhere(run, "crossbow_vgg16")
    yield "saturation", point(fastest(run), runs=[run.id], note=note, proxy=proxy)


def frame(evidence: Evidence) -> pd.DataFrame:
    """Arrivals with ``time``: epochs over the throughput of so many learners, in epochs of one."""
    run = evidence.run(settings.NETWORK[evidence.profile])
    names = [f"sma {k}" for k in trained_counts(evidence, run)]
    speed = {name: median(run.results[f"over_one_{name.split()[1]}"]) for name in names}
    return arrival_table(evidence, settings.FINAL_TARGET, names, speed)


def draw_resnet32(evidence: Evidence, figure: Figure) -> None:
    """Throughput against learners, the time to accuracy that follows, and where the paper has the best of both."""
    import seaborn as sns

    left, right = figure.subplots(1, 2)
    plots.throughput(evidence, left)
    table = frame(evidence)
    looks: dict[str, Any] = {"x": "learners", "y": "time", "color": PALETTE[0], "ax": right}
    sns.lineplot(table, errorbar=("pi", 100), marker="o", label="mean and range of the seeds", **looks)
    for axes, claim in ((left, "saturation"), (right, "tta-minimum")):
        best = printed_value(f"crossbow/fig14a/{claim}")
        axes.set_ylim(0)
        plots.printed_line(axes, best, f"printed best: m = {best:g}")
        axes.set_xticks([1, 2, 3, 4])
        axes.set_xlabel("learners on one device, m")
        plots.legend_above(axes, 1)
    right.set_ylabel(f"time to {table['target'].iloc[0]:g}%, in epochs of one learner")
    plots.say_stand_in(right, table["stand_in"].iloc[0])
    plots.legend_above(right, 1)


def frame_eight_gpus(_: Evidence) -> pd.DataFrame:
    """Modelled throughput with synchronisation in every iteration."""
    table = modelled_table()
    return table[table["interval"] == "1"]


def draw_eight_gpus(evidence: Evidence, figure: Figure) -> None:
    """In images a second, and where the paper has throughput saturated."""
    axes = figure.subplots()
    plots.on_eight_gpus(axes, "images_per_second", "images/s on 8 GPUs")
    axes.set_ylim(0, 24_000)
    best = printed_value("crossbow/fig14b/saturation")
    plots.printed_line(axes, best, f"printed: no more beyond m = {best:g}")
    axes.set_title("8 GPUs not run: a cost model, part of it solved from the paper", fontsize="small")
    plots.legend_above(axes, 2)


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
        (8.0, 4.2),
        frame,
    ),
    Artifact(
        "crossbow/fig14b",
        "Throughput of ResNet-32 on 8 GPUs against learners, modelled",
        draw=draw_eight_gpus,
        alt=plots.ALT_EIGHT_GPUS,
        frame=frame_eight_gpus,
    ),
    Artifact(
        "crossbow/fig14c",
        "Throughput of VGG-16 on one device against learners",
        runs_vgg16,
        (measure_vgg16,),
        draw_vgg16,
        plots.ALT_THROUGHPUT,
        frame=throughput_table,
    ),
    Artifact("crossbow/fig14d", "Time to accuracy and throughput of VGG-16 on 8 GPUs"),
)
