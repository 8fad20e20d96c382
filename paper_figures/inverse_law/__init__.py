"""Perrone et al., "Optimal Mini-Batch Size Selection for Fast Gradient Descent" (2019)."""

from __future__ import annotations

from paper_figures.inverse_law import (
    alg1,
    alg_scaling,
    collapse,
    eq1,
    eq2,
    eq3,
    eq4,
    eq5,
    eq6,
    eq7,
    eq8,
    eq9,
    eq10,
    eq12,
    eq17,
    eqbound,
    fig1,
    fig2,
    table1,
)
from paper_figures.inverse_law.experiments import EXPERIMENTS
from suite.papers.artifact import Paper

ORDER = (  # the paper's
    table1,
    fig1,
    collapse,
    fig2,
    alg1,
    eq1,
    eq2,
    eq3,
    eq4,
    eq5,
    eq6,
    eq7,
    eq8,
    eq9,
    eq10,
    alg_scaling,
    eq12,
    eq17,
    eqbound,
)

PAPER = Paper(
    "inverse_law",
    "Optimal Mini-Batch Size Selection for Fast Gradient Descent",
    "Michael P. Perrone, Haidar Khan, Changhoan Kim, Anastasios Kyrillidis, Jerry Quinn, Valentina Salapura, "
    "arXiv 1911.06459, 2019",
    tuple(artifact for module in ORDER for artifact in module.ARTIFACTS),
    EXPERIMENTS,
    "https://arxiv.org/abs/1911.06459",
)
