"""Perrone et al., "Optimal Mini-Batch Size Selection for Fast Gradient Descent" (2019)."""

from __future__ import annotations

from paper_figures.artifact import Paper
from paper_figures.inverse_law.artifacts import ARTIFACTS
from paper_figures.inverse_law.experiments import EXPERIMENTS

PAPER = Paper(
    "inverse_law",
    "Optimal Mini-Batch Size Selection for Fast Gradient Descent",
    "Michael P. Perrone, Haidar Khan, Changhoan Kim, Anastasios Kyrillidis, Jerry Quinn, Valentina Salapura, "
    "arXiv 1911.06459, 2019",
    ARTIFACTS,
    EXPERIMENTS,
)
