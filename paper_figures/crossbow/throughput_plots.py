"""Drawings of measured throughput: learners on one device, and one batch cut over devices."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from paper_figures.crossbow import settings
from paper_figures.crossbow.comparison import stand_in
from paper_figures.crossbow.readings import epochs, on_gpu, require
from paper_figures.crossbow.targets import common_target
from suite.papers.artifact import Evidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def label(network: str) -> str:
    return settings.NETWORKS.get(network, "a small LeNet")


def measured_on(evidence: Evidence) -> list[str]:
    """The groups of throughput runs, which bear the names of networks."""
    names = [name for name in evidence.groups if not name[-1].isdigit() or name in settings.NETWORKS]
    require(bool(names), f"throughput runs at {evidence.profile}")
    return names


def draw_throughput(evidence: Evidence, figure: Figure) -> None:
    """Throughput over one learner against learners: in one step, and as one batch k times as large."""
    _throughput_into(figure.subplots(), evidence)


def _throughput_into(axes: Any, evidence: Evidence) -> None:
    every: set[int] = set()
    for position, name in enumerate(measured_on(evidence)):
        run = evidence.run(name)
        counts = run.spec.settings["learners"]
        every |= set(counts)
        middle, large, below, above = [], [], [], []
        for k in counts:
            ordered = sorted(run.results[f"over_one_{k}"])
            middle.append(median(ordered))
            below.append(middle[-1] - ordered[len(ordered) // 10])
            above.append(ordered[-1 - len(ordered) // 10] - middle[-1])
            large.append(middle[-1] / median(run.results[f"over_batch_{k}"]))
        place = "GPU" if on_gpu(run) else "CPU"
        colour = f"C{position}"
        axes.errorbar(
            counts,
            middle,
            [below, above],
            marker="o",
            color=colour,
            linestyle="-",
            capsize=2,
            label=f"{label(name)}, k learners ({place})",
        )
        axes.plot(counts, large, marker="s", color=colour, linestyle="--", label=f"{label(name)}, k times the batch")
    axes.axhline(1, color="0.5", linewidth=0.8, linestyle=":")
    axes.set_xticks(sorted(every))
    axes.set_xlabel("learners k")
    axes.set_ylabel("throughput / one learner's")
    axes.legend()


def draw_saturation(evidence: Evidence, figure: Figure) -> None:
    """Fig. 14: throughput against learners, and the time to accuracy that follows where epochs were measured."""
    (name,) = measured_on(evidence)
    run = evidence.run(name)
    counts = [k for k in run.spec.settings["learners"] if f"sma {k}" in evidence.groups]
    if not counts:
        draw_throughput(evidence, figure)
        return
    left, right = figure.subplots(1, 2)
    _throughput_into(left, evidence)
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
    if place := stand_in(evidence, f"sma {counts[0]}"):
        right.set_title(f"Stand-in: {place}", fontsize="small")


def draw_split(evidence: Evidence, figure: Figure) -> None:
    """Fig. 2: one batch cut over devices like this one, from measured times and with exchange left out."""
    from suite.report.style import LINES

    require(bool(evidence.groups), f"throughput runs at {evidence.profile}")
    axes, most = figure.subplots(), 1
    for position, name in enumerate(evidence.groups):
        run = evidence.run(name)
        table = run.curve("seconds")
        seconds = table[table["side"] == "batch"].groupby("learners")["seconds"].median()
        for marker, whole in zip("os^", (2, 4, 8), strict=True):
            devices = [g for g in (1, 2, 4, 8) if whole % g == 0 and whole // g in seconds.index]
            if whole in seconds.index:
                speed = [float(seconds[whole] / seconds[whole // g]) for g in devices]
                title = f"{label(name)}, batch {whole * run.spec.settings['batch']}"
                axes.plot(devices, speed, marker=marker, color=f"C{position}", linestyle=LINES[position], label=title)
                most = max(most, *devices)
    axes.plot([1, most], [1, most], color="0.5", linewidth=0.8, linestyle=":", label="linear")
    axes.set_xticks([g for g in (1, 2, 4, 8) if g <= most])
    axes.set_xlabel("devices")
    axes.set_ylabel("throughput / one device's, exchange left out")
    axes.legend()
