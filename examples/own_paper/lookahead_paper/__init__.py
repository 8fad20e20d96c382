"""Lookahead Optimizer: k steps forward, 1 step back: what the paper claims, beside what came out."""

from __future__ import annotations

from lookahead_paper import fig1
from suite.experiment import Experiment, lazily
from suite.papers.artifact import Paper

PAPER = Paper(
    "lookahead",
    "Lookahead Optimizer: k steps forward, 1 step back",
    "Michael R. Zhang, James Lucas, Geoffrey Hinton, Jimmy Ba, NeurIPS 2019",
    fig1.ARTIFACTS,
    {"lookahead/quadratic": Experiment(lazily("lookahead_paper.experiments:quadratic"))},
)
