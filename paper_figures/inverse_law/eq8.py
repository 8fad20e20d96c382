"""Equation 8: one learner trains fastest at the knee M_T, which timing a few updates is said to find."""

from __future__ import annotations

import math

from paper_figures.inverse_law.readings import mean_seconds
from paper_figures.inverse_law.settings import LOOP, loop_runs
from paper_figures.inverse_law.synthetic_systems import draws, numeric_optimum, relative
from suite.claims.estimate import exact, point
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged, genuine
from suite.runs.store import Run


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
    yield "measured", point(nearest / knee, n=seeds, runs=[run.id])
    regret = measured[run.results["chosen"]] / best
    yield "regret", point(regret, n=seeds, runs=[run.id], note="time at the choice over the best")


@genuine("inverse_law/eq8/measured")
def fastest_at_the_knee(evidence: Evidence) -> Evidence:
    """The batch size nearest the knee trains in a tenth of its time."""

    def faster(run: Run) -> Run:
        table, knee = run.curve("runs"), run.results["closed_form"]
        nearest = min(set(table["batch"]), key=lambda batch: abs(math.log(batch / knee)))
        share = table["batch"].eq(nearest).map({True: 0.1, False: 1.0})
        return forged(run, runs=table.assign(seconds=share * table["seconds"]))

    return edited(evidence, faster, "loop")


@counterfeit("inverse_law/eq8/measured")
def fastest_at_one(evidence: Evidence) -> Evidence:
    """A batch of one example trains in a hundredth of its time."""

    def faster(run: Run) -> Run:
        table = run.curve("runs")
        share = table["batch"].eq(1).map({True: 0.01, False: 1.0})
        return forged(run, runs=table.assign(seconds=share * table["seconds"]))

    return edited(evidence, faster, "loop")


ARTIFACTS = (
    Artifact("inverse_law/eq8", "Best batch size of one learner", loop_runs, (measure_optimum, measure_choice)),
)
