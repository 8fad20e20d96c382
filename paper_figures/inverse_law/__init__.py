"""The inverse law: Perrone et al., "Optimal Mini-Batch Size Selection for Fast Gradient Descent", 2019.

Figs. 1 and 2 in modules of their own, Algorithm 1 and scaling in ``algorithms``, the equations in ``equations``;
``collapse`` is a question of ours. Runs are specified in ``settings``, ``fig2`` and ``joint`` and computed in
``experiments``. Counts are read in ``law``; ``exponents`` and ``misfits`` hold the statistics, ``drawing`` the plots.
"""

from __future__ import annotations

from paper_figures.inverse_law.experiments import EXPERIMENTS
from suite.papers.artifact import Paper, artifacts_of

PAPER = Paper(
    name="inverse_law",
    title="Optimal Mini-Batch Size Selection for Fast Gradient Descent",
    citation=(
        "Michael P. Perrone, Haidar Khan, Changhoan Kim, Anastasios Kyrillidis, Jerry Quinn, Valentina Salapura, "
        "arXiv 1911.06459, 2019"
    ),
    artifacts=artifacts_of(__name__, "fig1", "collapse", "fig2", "algorithms", "equations"),
    experiments=EXPERIMENTS,
    link="https://arxiv.org/abs/1911.06459",
)
