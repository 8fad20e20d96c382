"""Equation 8: one learner trains fastest at the knee M_T, which timing a few updates is said to find."""

from __future__ import annotations

import math

from paper_figures.inverse_law.readings import mean_seconds
from paper_figures.inverse_law.settings import LOOP, loop_runs
from paper_figures.inverse_law.synthetic_systems import draws, numeric_optimum, relative
from suite.claims.measured import exact, point
from suite.papers.artifact import Artifact, Evidence, Quantities


def measure_optimum(evidence: Evidence) -> Quantities:
    """Eq. 8, as the relative distance of the knee from the numeric minimiser."""
    yield "knee", exact(max(relative(numeric_optimum(law, s, 1)[0], s.knee) for law, s, _ in draws(100)))


def measure_choice(evidence: Evidence) -> Quantities:
    """The batch size that trained fastest over the fitted knee, and the regret of the method's choice.

    Times within a tenth of the best cannot be told from it here; of those batch sizes the one nearest the knee
    counts.
    """
    run = evidence.run("loop")
    measured = mean_seconds(run.curve("runs"))
    best = min(measured.values())
    knee = run.results["closed_form"]
    ties = [batch for batch, seconds in measured.items() if seconds <= 1.1 * best]
    nearest = min(ties, key=lambda batch: abs(math.log(batch / knee)))
    seeds = len(LOOP.settings["seeds"])
    yield "measured", point(nearest / knee, kind="measured", n=seeds, runs=[run.id])
    regret = measured[run.results["chosen"]] / best
    yield "regret", point(regret, kind="measured", n=seeds, runs=[run.id], note="time at the choice over the best")


ARTIFACTS = (
    Artifact("inverse_law/eq8", "Best batch size of one learner", loop_runs, (measure_optimum, measure_choice)),
)
