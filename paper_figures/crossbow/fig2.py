"""Fig. 2: throughput against GPUs when one batch is cut over them; a small batch leaves each too little to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import settings
from paper_figures.crossbow.readings import require
from paper_figures.crossbow.tables import network
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> settings.Groups:
    return settings.throughput(profile)


def measure(_: Evidence) -> Quantities:
    yield "b64-per-gpu", exact(64 / 8)


def draw(evidence: Evidence, figure: Figure) -> None:
    """One batch cut over devices like this one, from measured times and with exchange left out."""
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
                title = f"{network(name)}, batch {whole * run.spec.settings['batch']}"
                axes.plot(devices, speed, marker=marker, color=f"C{position}", linestyle=LINES[position], label=title)
                most = max(most, *devices)
    axes.plot([1, most], [1, most], color="0.5", linewidth=0.8, linestyle=":", label="linear")
    axes.set_xticks([g for g in (1, 2, 4, 8) if g <= most])
    axes.set_title(
        "Stand-in: parts of a batch timed on one device, for TensorFlow's ResNet-32 on 8 GPUs", fontsize="small"
    )
    axes.set_xlabel("devices")
    axes.set_ylabel("throughput / one device's, exchange left out")
    axes.legend()


ARTIFACTS = (
    Artifact(
        "crossbow/fig2",
        "Throughput of one batch cut over devices",
        runs,
        (measure,),
        draw,
        "Speed-up against devices for several batch sizes, below the line of linear growth.",
    ),
)
