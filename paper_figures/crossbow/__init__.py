"""Crossbow: synchronous model averaging with many learners per GPU.

Figs. 1 and 4 to 8 stand in ``systems``, drawn by ``diagrams``; the algorithms in ``algorithms``. ``readings`` takes
numbers from a frame, ``tables`` makes the frames that are drawn, ``plots`` holds what several figures draw.
"""

from __future__ import annotations

from paper_figures.crossbow import (
    algorithms,
    engine,
    fig2,
    fig3,
    fig9,
    fig10,
    fig11,
    fig12,
    fig13,
    fig14,
    fig15,
    fig16,
    fig17,
    lenet,
    systems,
    table1,
)
from paper_figures.crossbow.experiments import EXPERIMENTS
from suite.papers.artifact import Paper

FIGURES = (fig2, fig3, fig9, fig10, fig11, fig12, fig13, fig14, fig15, fig16, fig17)
MODULES = (table1, systems, *FIGURES, algorithms, engine, lenet)

PAPER = Paper(
    "crossbow",
    "Crossbow: Scaling Deep Learning with Small Batch Sizes on Multi-GPU Servers",
    "Koliousis, Watcharapichat, Weidlich, Mai, Costa and Pietzuch, PVLDB 12(11), 2019",
    tuple(artifact for module in MODULES for artifact in module.ARTIFACTS),
    EXPERIMENTS,
    "https://doi.org/10.14778/3342263.3342276",
)
