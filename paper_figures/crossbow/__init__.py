"""Crossbow: synchronous model averaging with many learners per GPU.

Figs. 1 and 4 to 8 stand in ``systems``, drawn by ``diagrams``; the algorithms in ``algorithms``. ``readings`` takes
numbers from a frame, ``tables`` makes the frames that are drawn, ``plots`` holds what several figures draw.
"""

from __future__ import annotations

from paper_figures.crossbow.experiments import EXPERIMENTS
from suite.papers.artifact import Paper, artifacts_of

MODULES = ("table1", "systems", *(f"fig{n}" for n in (2, 3, *range(9, 18))), "algorithms", "engine", "lenet")
PAPER = Paper(
    "crossbow",
    "Crossbow: Scaling Deep Learning with Small Batch Sizes on Multi-GPU Servers",
    "Koliousis, Watcharapichat, Weidlich, Mai, Costa and Pietzuch, PVLDB 12(11), 2019",
    artifacts_of(__name__, *MODULES),
    EXPERIMENTS,
    "https://doi.org/10.14778/3342263.3342276",
)
