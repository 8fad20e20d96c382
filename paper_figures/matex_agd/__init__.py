"""MaTEx: leveraging asynchronicity in gradient descent for scalable deep learning."""

from __future__ import annotations

from paper_figures.matex_agd import algorithms, equations, fig1, table1
from paper_figures.matex_agd.experiments import EXPERIMENTS
from suite.papers.artifact import Paper

PAPER = Paper(
    name="matex_agd",
    title="Leveraging Asynchronicity in Gradient Descent for Scalable Deep Learning",
    citation=(
        "Jeff Daily, Abhinav Vishnu and Charles Siegel, Leveraging Asynchronicity in Gradient Descent for "
        "Scalable Deep Learning, under review at ICLR 2017"
    ),
    artifacts=(*table1.ARTIFACTS, *fig1.ARTIFACTS, *algorithms.ARTIFACTS, *equations.ARTIFACTS),
    experiments=EXPERIMENTS,
    link=(
        "https://openreview.net/search?term=Leveraging%20Asynchronicity%20in%20Gradient%20Descent%20for%20Scalable"
        "%20Deep%20Learning"
    ),
)
