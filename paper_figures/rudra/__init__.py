"""Rudra: Gupta, Zhang and Milthorpe, "Model Accuracy and Runtime Tradeoff in Distributed Deep Learning", 2015."""

from __future__ import annotations

from paper_figures.rudra.experiments import EXPERIMENTS
from paper_figures.rudra.protocols import ALGORITHM_ARTIFACTS, PROTOCOL_ARTIFACTS
from paper_figures.rudra.speeds import SPEED_ARTIFACTS
from paper_figures.rudra.systems import SYSTEM_ARTIFACTS, TABLE1
from paper_figures.rudra.tables import TABLE_ARTIFACTS
from paper_figures.rudra.tradeoffs import TRADEOFF_ARTIFACTS
from suite.papers.artifact import Paper

PAPER = Paper(
    name="rudra",
    title="Model Accuracy and Runtime Tradeoff in Distributed Deep Learning",
    citation=(
        "Suyog Gupta, Wei Zhang, Josh Milthorpe: Model Accuracy and Runtime Tradeoff in Distributed Deep Learning. "
        "arXiv:1509.04210, 2015."
    ),
    artifacts=(
        *SYSTEM_ARTIFACTS,
        TABLE1,
        *TABLE_ARTIFACTS,
        *PROTOCOL_ARTIFACTS,
        *TRADEOFF_ARTIFACTS,
        *SPEED_ARTIFACTS,
        *ALGORITHM_ARTIFACTS,
    ),
    experiments=EXPERIMENTS,
)
