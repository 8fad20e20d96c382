"""Fig. 2: throughput against GPUs when one batch is cut over them; a small batch leaves each too little to do."""

from __future__ import annotations

from paper_figures.crossbow import settings
from paper_figures.crossbow.readings import network, of_experiment
from suite.papers.figure import Artifact, Figure, Frame
from suite.report.style import LINES

PANEL = Artifact("crossbow/fig2", "Throughput of one batch cut over devices", settings.throughput)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
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
