"""Crossbow: synchronous model averaging with many learners per GPU."""

from __future__ import annotations

from paper_figures.crossbow import (
    alg1,
    alg2,
    algorithms,
    engine,
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
    fig10,
    fig11,
    fig12,
    fig13,
    fig14,
    fig15,
    fig16,
    fig17,
    lenet,
    table1,
)
from paper_figures.crossbow.experiments import EXPERIMENTS
from suite.papers.artifact import Paper

MODULES = (  # in the paper's order
    table1,
    fig1,
    fig2,
    fig3,
    fig4,
    fig5,
    fig6,
    fig7,
    fig8,
    fig9,
    fig10,
    fig11,
    fig12,
    fig13,
    fig14,
    fig15,
    fig16,
    fig17,
    alg1,
    alg2,
    algorithms,
    equations,
    engine,
    lenet,
)

PAPER = Paper(
    "crossbow",
    "Crossbow: Scaling Deep Learning with Small Batch Sizes on Multi-GPU Servers",
    "Koliousis, Watcharapichat, Weidlich, Mai, Costa and Pietzuch, PVLDB 12(11), 2019",
    tuple(artifact for module in MODULES for artifact in module.ARTIFACTS),
    EXPERIMENTS,
    "https://doi.org/10.14778/3342263.3342276",
)
