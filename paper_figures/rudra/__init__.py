"""Rudra: Gupta, Zhang and Milthorpe, "Model Accuracy and Runtime Tradeoff in Distributed Deep Learning", 2015.

One module per figure or table (Figs. 1 to 3 in ``systems``), the protocols in ``algorithms``, Eq. 7 in ``equations``.
Runs are specified in ``settings`` and ``plans`` and computed in ``experiments``. Final errors and predicted times are
read in ``errors`` and ``times``; ``drawing`` holds what several figures draw.
"""

from __future__ import annotations

from paper_figures.rudra.experiments import EXPERIMENTS
from suite.papers.artifact import Paper, artifacts_of

NUMBERED = (*(f"table{n}" for n in range(1, 5)), *(f"fig{n}" for n in range(4, 10)))
PAPER = Paper(
    name="rudra",
    title="Model Accuracy and Runtime Tradeoff in Distributed Deep Learning",
    citation=(
        "Suyog Gupta, Wei Zhang, Josh Milthorpe: Model Accuracy and Runtime Tradeoff in Distributed Deep Learning. "
        "arXiv:1509.04210, 2015."
    ),
    artifacts=artifacts_of(__name__, "systems", *NUMBERED, "rate", "algorithms", "equations"),
    experiments=EXPERIMENTS,
    link="https://arxiv.org/abs/1509.04210",
)
