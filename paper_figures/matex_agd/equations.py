"""Eq. 1-2, the update of weights and biases, and what the paper says of speed-up and parallel efficiency.

Beside the printed efficiency stands what a shaped link shows: the rates of every method relative to no
communication, measured, simulated and predicted.
"""

from __future__ import annotations

from paper_figures.matex_agd.exchanges import DELAYED, METHODS, WORKLOADS, draw_link, link_runs, link_table
from suite.papers.figure import Artifact, Figure, Frame, printed_value
from suite.report.style import INK

EQ1 = Artifact("matex_agd/eq1", "Update of weights and biases")
EFFICIENCY = Artifact("matex_agd/eq-efficiency", "Speed-up and parallel efficiency", link_runs, size=(7.2, 7.6))

EFFICIENCY.table(lambda frame: link_table(frame, *WORKLOADS))


@EFFICIENCY.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Rates relative to no communication of every method over a shaped link at three speeds, with the cost model's
    prediction, for a sleeping and a computing network.
    """
    # What is printed stands beside them as if its two numbers belonged to one setting: AGD at its best, and SGD.
    rows = link_table(frame, *WORKLOADS)
    best, speedup = printed_value("matex_agd/fig1a/efficiency"), printed_value("matex_agd/fig1a/speedup")
    for axes, (workload, title) in zip(figure.subplots(2, 1, sharey=True), WORKLOADS.items(), strict=True):
        draw_link(rows[rows["workload"] == workload], METHODS, axes)
        for methods, percent in (("SGD",), best / speedup), (DELAYED, best):
            ends = (METHODS.index(methods[0]) - 0.45, METHODS.index(methods[-1]) + 0.45)
            axes.plot(
                ends,
                [percent / 100] * 2,
                "D--",
                color=INK,
                markerfacecolor="none",
                linewidth=0.8,
                label="printed (SGD: 82% / 1.7)",
            )
        handles, labels = axes.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        place = {"loc": "lower left", "bbox_to_anchor": (0, 0.99), "borderaxespad": 0}
        axes.legend(unique.values(), unique, ncols=5, columnspacing=1, **place)
        axes.set_title(f"two workers over a link: {title}", pad=20)
