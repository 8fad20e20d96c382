"""Fig. 1: parallel synchronous SGD; every worker applies the averaged gradient to its own copy of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import settings
from paper_figures.crossbow.diagrams import synchronous
from paper_figures.crossbow.readings import results, telling
from paper_figures.crossbow.tables import results_table
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

GAPS = {
    "synchronous_copies": "largest difference of the replicas",
    "partial_gradients": "largest difference of averaged and whole gradient",
}


def runs(profile: str) -> settings.Groups:
    return {"algebra": (settings.ALGEBRA,)}


def measure(evidence: Evidence) -> Quantities:
    return results(
        evidence, "algebra", {"replicas-equal": "synchronous_copies", "equals-large-batch": "partial_gradients"}
    )


@counterfeit("crossbow/fig1/replicas-equal", "crossbow/fig1/equals-large-batch")
def gradients_not_averaged(evidence: Evidence) -> Evidence:
    """Every worker applies its own gradient, so copies drift and partial gradients stay partial."""
    apart = evidence.run("algebra").results["least_distance"]
    return telling(evidence, "algebra", synchronous_copies=apart, partial_gradients=apart)


def frame(evidence: Evidence) -> pd.DataFrame:
    """The gaps that a run of S-SGD on two workers left."""
    return results_table(evidence, "algebra", GAPS)


def draw(evidence: Evidence, figure: Figure) -> None:
    """The paper's diagram, and beneath it what the run found."""
    copies, partial = frame(evidence)["value"]
    told = (
        f"Two workers, 40 iterations: the replicas differ by at most {copies:g} (printed: 0).",
        f"The mean of the partial gradients is the batch's to {partial:.0e} (printed: 0, float64).",
    )
    synchronous(figure.subplots(), told)


ARTIFACTS = (
    Artifact(
        "crossbow/fig1",
        "Parallel synchronous SGD on two workers",
        runs,
        (measure,),
        draw,
        "Half a batch goes to each of two GPUs, whose partial gradients are averaged into the same update of both; "
        "replicas and gradients differ by zero or rounding.",
        (7.2, 3.8),
        frame,
    ),
)
