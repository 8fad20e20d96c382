"""ISGD: Wang, Yang, Min and Chakradhar, "Accelerating Deep Neural Network Training with Inconsistent Stochastic
Gradient Descent", 2016.

One module per figure, Algorithms 1 and 2 in ``algorithms``, Eqs. 15, 19 and 21 in ``equations``; ``zeta`` is a figure
of our own. Runs are specified in ``settings`` and computed in ``experiments``. Pairs of runs are read in ``pairs``.
"""

from __future__ import annotations

from paper_figures.isgd.experiments import EXPERIMENTS
from suite.papers.artifact import Paper, artifacts_of

MODULES = (*(f"fig{n}" for n in range(1, 9)), "algorithms", "equations", "zeta")
PAPER = Paper(
    name="isgd",
    title="Accelerating Deep Neural Network Training with Inconsistent Stochastic Gradient Descent",
    citation="Linnan Wang, Yi Yang, Martin Renqiang Min and Srimat Chakradhar, 2016 (arXiv 1603.05544v2)",
    artifacts=artifacts_of(__name__, *MODULES),
    experiments=EXPERIMENTS,
    link="https://arxiv.org/abs/1603.05544",
)
