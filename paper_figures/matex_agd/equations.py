"""Eq. 1-2, the update of weights and biases, and what the paper says of speed-up and parallel efficiency.

Beside the printed efficiency stands what a shaped link shows: the rates of every method relative to no
communication, measured, simulated and predicted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.matex_agd import algorithms
from paper_figures.matex_agd.link_readings import (
    DELAYED,
    METHODS,
    SPEEDS,
    WORKLOADS,
    link_run,
    link_runs,
    ratios,
)
from paper_figures.matex_agd.link_readings import frame as link_frame
from paper_figures.matex_agd.plots import draw_workload
from suite.claims.estimate import exact, over_seeds
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.published import printed_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def measure_update_rule(evidence: Evidence) -> Quantities:
    run = evidence.run("properties")
    found, runs = run.results, (run.id,)
    note = "cost before less cost after a step of 1e-3, with the printed plus sign"
    yield "descent", exact(found["algorithm_1/cost lowered by plus"], runs=runs, note=note)
    yield "descent-minus", exact(found["algorithm_1/cost lowered by minus"], runs=runs, note="with a minus sign")


def measure_efficiency(evidence: Evidence) -> Quantities:
    best, speedup = printed_value("matex_agd/fig1a/efficiency"), printed_value("matex_agd/fig1a/speedup")
    yield "consistency", exact(best / speedup, note="82% / 1.7, if both belong to one setting")


def measure_link_ratios(evidence: Evidence) -> Quantities:
    """Every method over no communication, and the best delayed exchange over DDP, with Student t intervals."""
    run = link_run(evidence)
    for workload in WORKLOADS:
        for method, base in [(name, "no comm") for name in METHODS] + [("AGD 1 comm", "PyTorch DDP")]:
            seen = [ratios(run, workload, speed, method, base) for speed in SPEEDS]
            yield (
                f"{workload}: {method} over {base}",
                over_seeds(seen, (run.id,), "at 200 Mbit/s, 600 Mbit/s and 4 Gbit/s between two workers"),
            )


def frame(evidence: Evidence) -> pd.DataFrame:
    """Rates over no communication of every method over the link, by workload, speed and repetition; and modelled."""
    return link_frame(link_run(evidence))


def draw_link(evidence: Evidence, figure: Figure) -> None:
    """One panel a workload; bars by speed, crosses where the cost model predicts the sleeping network.

    What is printed stands beside them as if its two numbers belonged to one setting: AGD at its best, and SGD.
    """
    from suite.report.style import INK

    table = frame(evidence)
    best, speedup = printed_value("matex_agd/fig1a/efficiency"), printed_value("matex_agd/fig1a/speedup")
    for axes, (workload, title) in zip(figure.subplots(2, 1, sharey=True), WORKLOADS.items(), strict=True):
        draw_workload(table[table["workload"] == workload], METHODS, axes)
        for methods, percent in (("SGD",), best / speedup), (DELAYED, best):
            ends = (METHODS.index(methods[0]) - 0.45, METHODS.index(methods[-1]) + 0.45)
            axes.plot(
                ends, [percent / 100] * 2, "D--", color=INK, markerfacecolor="none", linewidth=0.8, label="printed"
            )
        handles, labels = axes.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        place = {"loc": "lower left", "bbox_to_anchor": (0, 0.99), "borderaxespad": 0}
        axes.legend(unique.values(), unique, ncols=5, columnspacing=1, **place)
        axes.set_title(f"two workers over a link: {title}", pad=20)


ARTIFACTS = (
    Artifact("matex_agd/eq1", "Update of weights and biases", algorithms.runs, (measure_update_rule,)),
    Artifact(
        "matex_agd/eq-efficiency",
        "Speed-up and parallel efficiency",
        link_runs,
        (measure_efficiency, measure_link_ratios),
        draw_link,
        "Rates relative to no communication of every method over a shaped link at three speeds, with the cost "
        "model's prediction, for a sleeping and a computing network",
        (7.2, 7.6),
        frame=frame,
    ),
)
