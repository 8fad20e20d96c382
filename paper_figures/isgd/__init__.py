"""Inconsistent stochastic gradient descent (Wang et al., 2016): every table, figure, algorithm and equation."""

from __future__ import annotations

from paper_figures.isgd import (
    alg1,
    alg2,
    algorithms,
    eq15,
    eq18,
    eq19,
    eq21,
    eq22,
    equations,
    example5_3,
    fig1,
    fig2,
    fig3,
    fig4,
    fig5,
    fig6,
    fig7,
    fig8,
    table1,
    zeta,
)
from paper_figures.isgd.experiments import EXPERIMENTS
from suite.papers.artifact import Paper

IN_ORDER = (
    *(table1, fig1, fig2, fig3, fig4, fig5, fig6, example5_3, fig7, fig8),
    *(alg1, alg2, algorithms, equations, eq15, eq18, eq19, eq21, eq22),
    zeta,
)

PAPER = Paper(
    name="isgd",
    title="Accelerating Deep Neural Network Training with Inconsistent Stochastic Gradient Descent",
    citation="Linnan Wang, Yi Yang, Martin Renqiang Min and Srimat Chakradhar, 2016 (arXiv 1603.05544v2)",
    artifacts=tuple(artifact for module in IN_ORDER for artifact in module.ARTIFACTS),
    experiments=EXPERIMENTS,
    link="https://arxiv.org/abs/1603.05544",
)
