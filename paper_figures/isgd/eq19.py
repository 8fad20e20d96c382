"""Eq. 19: the time of an update is the batch size over the images per second of the devices, and a constant.

The constant is what synchronisation takes on several devices; on the one that is timed here, the cost of launching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.isgd import readings, settings
from paper_figures.isgd.settings import NETWORKS
from suite.claims.measured import point
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure(evidence: Evidence) -> Quantities:
    """Share of the variance of the time of a gradient that a straight line explains, on one device."""
    import numpy as np

    worst, notes, ids = 1.0, [], []
    for kind in evidence.groups:
        batches, seconds, _, run_id = readings.latency(evidence, kind)
        if len(batches) < 3:
            raise Missing(f"three batch sizes of {kind}")
        slope, intercept = np.polyfit(batches, seconds, 1)
        residual = seconds - (slope * batches + intercept)
        worst = min(worst, float(1 - residual.var() / seconds.var()))
        notes.append(f"{kind}: C1 {1 / slope:.3g} images/s, intercept {1e3 * intercept:.2g} ms")
        ids.append(run_id)
    yield "linear", point(worst, proxy=True, runs=ids, note="; ".join(notes) + "; R squared, the worst")


def draw(evidence: Evidence, figure: Figure) -> None:
    import numpy as np

    axes = figure.subplots()
    for position, kind in enumerate(evidence.groups):
        batches, seconds, *_ = readings.latency(evidence, kind)
        axes.plot(batches, seconds, "o", color=f"C{position}", markersize=3, label=NETWORKS[kind])
        if len(batches) > 2:
            slope, intercept = np.polyfit(batches, seconds, 1)
            axes.plot(batches, slope * batches + intercept, color=f"C{position}", linewidth=0.9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("batch size (images)")
    axes.set_ylabel("time of one gradient (s), measured here")
    axes.legend(fontsize="small")


ARTIFACTS = (
    Artifact(
        "isgd/eq19",
        "Time of one gradient against batch size",
        settings.latencies,
        (measure,),
        draw,
        "Time of one gradient against batch size with a fitted line for each network.",
    ),
)
