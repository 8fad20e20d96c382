"""Fig. 4: two learners with batches of their own, and corrections that hold them to the average model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import results
from suite.papers.artifact import Artifact, Evidence, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> settings.Groups:
    return {"algebra": (settings.ALGEBRA,)}


def measure(evidence: Evidence) -> Quantities:
    return results(
        evidence, "algebra", {"different-batches": "shared_in_iteration", "replicas-differ": "least_distance"}
    )


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
