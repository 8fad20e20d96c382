"""Fig. 4: two learners with batches of their own, and corrections that hold them to the average model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import settings
from paper_figures.crossbow.diagrams import learners
from paper_figures.crossbow.readings import results, telling
from paper_figures.crossbow.tables import results_table
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

APART = {
    "shared_in_iteration": "samples read by two learners of an iteration",
    "least_distance": "least distance of two replicas",
}


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


def frame(evidence: Evidence) -> pd.DataFrame:
    """What the learners of a run shared, and how near two replicas came."""
    return results_table(evidence, "algebra", APART)


def draw(evidence: Evidence, figure: Figure) -> None:
    """The paper's diagram, and beneath it what a run of four learners found."""
    shared, least = frame(evidence)["value"]
    told = (
        f"Four learners, one epoch: {shared:g} samples shared by two learners of an iteration (printed: 0);",
        f"the two replicas nearest to each other are {least:.3f} apart (0 would be one model for all).",
    )
    learners(figure.subplots(), told)


ARTIFACTS = (
    Artifact(
        "crossbow/fig4",
        "Two learners with separate batches and corrections",
        runs,
        (measure,),
        draw,
        "Two learners update replicas of their own with gradients of their own batches and with corrections through "
        "the average model, over three iterations.",
        (7.2, 4.2),
        frame,
    ),
)
