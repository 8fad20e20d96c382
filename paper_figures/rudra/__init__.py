"""Rudra: Gupta, Zhang and Milthorpe, "Model Accuracy and Runtime Tradeoff in Distributed Deep Learning", 2015.

One module per figure or table, but for Figs. 1 to 3 (``systems``), Figs. 6 and 7 (``tradeoff``) and Tables 2 and 3
(``cifar``); the protocols and Eq. 7 in ``algorithms``.
Runs are specified in ``settings`` and ``plans`` and computed in ``experiments``. Final errors and predicted times are
read in ``errors`` and ``times``; ``drawing`` holds what several figures draw.
"""

from __future__ import annotations

from paper_figures.rudra.experiments import EXPERIMENTS
from suite.papers.artifact import Paper, artifacts_of

MODULES = ("systems", "table1", "cifar", "table4", "fig4", "fig5", "tradeoff", "fig8", "fig9", "rate", "algorithms")
PAPER = Paper(
    name="rudra",
    title="Model Accuracy and Runtime Tradeoff in Distributed Deep Learning",
    citation=(
        "Suyog Gupta, Wei Zhang, Josh Milthorpe: Model Accuracy and Runtime Tradeoff in Distributed Deep Learning. "
        "arXiv:1509.04210, 2015."
    ),
    artifacts=artifacts_of(__name__, *MODULES),
    experiments=EXPERIMENTS,
    link="https://arxiv.org/abs/1509.04210",
)
