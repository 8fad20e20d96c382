"""All methods of the suite on one task, at equal budget and equal tuning: our question and no paper's claim."""

from __future__ import annotations

from paper_figures.together.experiments import EXPERIMENTS
from suite.papers.artifact import Paper, artifacts_of

PAPER = Paper(
    name="together",
    title="Together: all methods on one task at equal budget",
    citation="A question of this suite, which none of the five papers asks",
    artifacts=artifacts_of(__name__, "board"),
    experiments=EXPERIMENTS,
)
