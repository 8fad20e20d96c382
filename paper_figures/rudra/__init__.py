"""Rudra: Gupta, Zhang and Milthorpe, "Model Accuracy and Runtime Tradeoff in Distributed Deep Learning", 2015.

One module per figure or table, the protocols in ``algorithms``, the equations in ``equations``; what they share is
in ``settings``, ``simulations``, ``groups``, ``readings`` and ``plots``; what computes runs is in ``experiments``.
"""

from __future__ import annotations

from paper_figures.rudra import (
    algorithms,
    equations,
    fig1,
    fig2,
    fig3,
    fig4,
    fig5,
    fig6,
    fig7,
    fig8,
    fig9,
    table1,
    table2,
    table3,
    table4,
)
from paper_figures.rudra import worlds as worlds  # counterfeits, which register themselves
from paper_figures.rudra.experiments import EXPERIMENTS
from suite.papers.artifact import Paper

MODULES = (
    fig1,
    fig2,
    fig3,
    table1,
    table2,
    table3,
    table4,
    fig4,
    fig5,
    fig6,
    fig7,
    fig8,
    fig9,
    algorithms,
    equations,
)
PAPER = Paper(
    name="rudra",
    title="Model Accuracy and Runtime Tradeoff in Distributed Deep Learning",
    citation=(
        "Suyog Gupta, Wei Zhang, Josh Milthorpe: Model Accuracy and Runtime Tradeoff in Distributed Deep Learning. "
        "arXiv:1509.04210, 2015."
    ),
    artifacts=tuple(artifact for module in MODULES for artifact in module.ARTIFACTS),
    experiments=EXPERIMENTS,
    link="https://arxiv.org/abs/1509.04210",
)
