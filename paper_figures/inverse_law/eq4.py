"""Equation 4: computing an update takes constant time up to a knee M_T, and time in proportion to M above it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paper_figures.inverse_law.plots import logarithmic
from paper_figures.inverse_law.settings import BATCHES, loop_runs
from suite.batch_size.knee import fit_knee
from suite.claims.intervals import mean_interval
from suite.claims.measured import exact, interval
from suite.papers.artifact import Artifact, Evidence, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure_single_core(evidence: Evidence) -> Quantities:
    """The knee fitted to a core that takes one example after another, 1 ms each."""

    def seconds(batch: int, cores: int) -> float:
        loads = [0] * cores
        for example in range(batch):
            loads[example % cores] += 1
        return 1e-3 * max(loads)

    yield "single-core-knee", exact(fit_knee({batch: seconds(batch, 1) for batch in BATCHES}).knee)


def measure_knee(evidence: Evidence) -> Quantities:
    """Log-log slopes of seconds per update at the two ends of the batch sizes timed, round by round."""
    run = evidence.run("loop")
    table = run.curve("timings")
    wide = table.pivot_table(index=["repeat", "round"], columns="batch", values="seconds")
    sizes = [int(b) for b in wide.columns]
    for name, low, high in (("flat-below", sizes[0], sizes[2]), ("linear-above", sizes[-3], sizes[-1])):
        slopes = [math.log(b / a) / math.log(high / low) for a, b in zip(wide[low], wide[high], strict=True)]
        found = mean_interval(slopes)
        yield name, interval(found.mean, found.low, found.high, kind="measured", n=found.n, runs=[run.id])


def draw(evidence: Evidence, figure: Figure) -> None:
    """Seconds per update by batch size, every round and their median, with Eq. 4 fitted."""
    import numpy as np

    from suite.report.style import PALETTE

    table, rounds = evidence.run("loop").curve("batches"), evidence.run("loop").curve("timings")
    knee = fit_knee(dict(zip((int(b) for b in table["batch"]), table["update_seconds"], strict=True)))
    grid = sorted({*np.geomspace(table["batch"].min(), table["batch"].max(), 60), knee.knee})
    axes = figure.add_subplot()
    axes.plot(rounds["batch"], rounds["seconds"], ".", markersize=2, color="0.6", label="each round")
    axes.plot(table["batch"], table["update_seconds"], "o", color=PALETTE[1], label="median")
    axes.plot(grid, [knee.seconds(b) for b in grid], "-", color=PALETTE[0], label=f"Eq. 4, knee at {knee.knee:.0f}")
    logarithmic(axes, list(table["batch"]))
    axes.set_xlabel("mini-batch size M (examples)")
    axes.set_ylabel("seconds per update")
    axes.legend(fontsize="small")


ARTIFACTS = (
    Artifact(
        "inverse_law/eq4",
        "Compute time with a knee",
        loop_runs,
        (measure_single_core, measure_knee),
        draw=draw,
        alt="Seconds per update against batch size with the fitted knee.",
    ),
)
