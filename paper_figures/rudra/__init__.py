"""Rudra: Gupta, Zhang and Milthorpe, "Model Accuracy and Runtime Tradeoff in Distributed Deep Learning", 2015."""

from __future__ import annotations

from paper_figures.artifact import Paper
from paper_figures.rudra.experiments import EXPERIMENTS

PAPER = Paper(
    name="rudra",
    title="Model Accuracy and Runtime Tradeoff in Distributed Deep Learning",
    citation=(
        "Suyog Gupta, Wei Zhang, Josh Milthorpe: Model Accuracy and Runtime Tradeoff in Distributed Deep Learning. "
        "arXiv:1509.04210, 2015."
    ),
    artifacts=(),
    experiments=EXPERIMENTS,
)
