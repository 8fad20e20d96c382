"""MaTEx: leveraging asynchronicity in gradient descent for scalable deep learning."""

from __future__ import annotations

from paper_figures.artifact import Artifact, Paper
from paper_figures.matex_agd import settings

PAPER = Paper(
    name="matex_agd",
    title="Leveraging Asynchronicity in Gradient Descent for Scalable Deep Learning",
    citation=(
        "Jeff Daily, Abhinav Vishnu and Charles Siegel, Leveraging Asynchronicity in Gradient Descent for "
        "Scalable Deep Learning, under review at ICLR 2017"
    ),
    artifacts=(
        Artifact("matex_agd/table1", "AlexNet accuracy after every 1000 batches", runs=settings.table1),
        Artifact("matex_agd/fig1b", "AlexNet on the DGX-1", runs=settings.whole_training),
    ),
    experiments={},
)
