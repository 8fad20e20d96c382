"""Fig. 17: throughput on 8 GPUs rises with the synchronisation interval tau, by 20 to 27% without synchronisation."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from paper_figures.crossbow import server_model
from suite.claims.measured import exact, point
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVALS = (1, 2, 4, None)  # iterations from one synchronisation to the next; None: never


def measure_printed_gain(_: Evidence) -> Quantities:
    never, always = (printed_value(f"crossbow/fig17/{claim}") for claim in ("nosync", "tau1"))
    yield "gain-m1-arithmetic", exact(100 * (never / always - 1))


def measure_throughput(_: Evidence) -> Quantities:
    """Steps of log throughput between intervals, by the cost model of the paper's server."""
    speed = [server_model.throughput(1, tau) for tau in INTERVALS]
    steps = [math.log(longer / shorter) for shorter, longer in pairwise(speed)]
    yield "rises-with-tau", point(steps, kind="proxy", note=server_model.CALIBRATION)


def draw(evidence: Evidence, figure: Figure) -> None:
    axes = figure.subplots()
    places = range(len(INTERVALS))
    for m in (1, 2, 4):
        speed = [server_model.throughput(m, tau) for tau in INTERVALS]
        axes.plot(places, speed, marker="o", label=f"m = {m}, modelled")
    printed = [printed_value(f"crossbow/fig17/{claim}") for claim in ("tau1", "nosync")]
    axes.plot([0, 3], printed, "D", color="C6", label="printed, m = 1")
    axes.set_xticks(places, ["1", "2", "4", "none"])
    axes.set_xlabel("synchronisation interval tau")
    axes.set_ylabel("images/s on 8 GPUs")
    axes.legend()


ARTIFACTS = (
    Artifact(
        "crossbow/fig17",
        "Throughput on 8 GPUs against the synchronisation interval, modelled",
        measures=(measure_printed_gain, measure_throughput),
        draw=draw,
        alt="Modelled throughput on 8 GPUs against the synchronisation interval with the two printed values.",
    ),
)
