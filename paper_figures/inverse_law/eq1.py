"""Equation 1: the time to converge is the number of updates times the seconds per update."""

from __future__ import annotations

from paper_figures.inverse_law.settings import loop_runs
from suite.claims.estimate import point
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged
from suite.runs.store import Run


def measure_product(evidence: Evidence) -> Quantities:
    """Mean seconds to converge over (mean updates x mean seconds per update), minus one, worst batch size."""
    run = evidence.run("loop")
    errors = []
    for _, group in run.curve("runs").groupby("batch"):
        product = group["updates"].mean() * (group["seconds"] / group["updates"]).mean()
        errors.append(group["seconds"].mean() / product - 1)
    worst = max(errors, key=abs)
    yield "product", point(worst, n=len(errors), runs=[run.id])


@counterfeit("inverse_law/eq1/product")
def long_runs_are_dearer(evidence: Evidence) -> Evidence:
    """Seconds per update grow as the cube of the updates that a seed needs, relative to its fellows."""

    def dearer(run: Run) -> Run:
        table = run.curve("runs")
        share = table["updates"] / table.groupby("batch")["updates"].transform("mean")
        return forged(run, runs=table.assign(seconds=table["seconds"] * share**3))

    return edited(evidence, dearer, "loop")


ARTIFACTS = (
    Artifact("inverse_law/eq1", "Time to converge: updates times seconds per update", loop_runs, (measure_product,)),
)
