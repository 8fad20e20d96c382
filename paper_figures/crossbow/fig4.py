"""Fig. 4: two learners with batches of their own, and corrections that hold them to the average model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import results, telling
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> settings.Groups:
    return {"algebra": (settings.ALGEBRA,)}


def measure(evidence: Evidence) -> Quantities:
    return results(
        evidence, "algebra", {"different-batches": "shared_in_iteration", "replicas-differ": "least_distance"}
    )


@counterfeit("crossbow/fig4/different-batches", "crossbow/fig4/replicas-differ")
def one_batch_for_all(evidence: Evidence) -> Evidence:
    """Four learners read the same batch of four samples and stay equal."""
    return telling(evidence, "algebra", shared_in_iteration=12.0, least_distance=0.0)


def draw(evidence: Evidence, figure: Figure) -> None:
    plots.paths(evidence, figure)


ARTIFACTS = (
    Artifact(
        "crossbow/fig4",
        "Two learners with separate batches and corrections",
        runs,
        (measure,),
        draw,
        "Paths of two replicas that start together and part, with the average model between them.",
    ),
)
