"""MaTEx: Daily, Vishnu and Siegel, "Leveraging Asynchronicity in Gradient Descent for Scalable Deep Learning".

Runs are specified in ``settings`` and computed in ``experiments``. ``costs`` holds the cost model's cases and
``exchanges`` what was timed over links; both are read by Fig. 1 and the efficiency.
"""

from __future__ import annotations

from paper_figures.matex_agd.experiments import EXPERIMENTS
from suite.papers.artifact import Paper, artifacts_of

PAPER = Paper(
    name="matex_agd",
    title="Leveraging Asynchronicity in Gradient Descent for Scalable Deep Learning",
    citation=(
        "Jeff Daily, Abhinav Vishnu and Charles Siegel, Leveraging Asynchronicity in Gradient Descent for "
        "Scalable Deep Learning, under review at ICLR 2017"
    ),
    artifacts=artifacts_of(__name__, "table1", "fig1", "algorithms", "equations"),
    experiments=EXPERIMENTS,
    link=(
        "https://openreview.net/search?term=Leveraging%20Asynchronicity%20in%20Gradient%20Descent%20for%20Scalable"
        "%20Deep%20Learning"
    ),
)
