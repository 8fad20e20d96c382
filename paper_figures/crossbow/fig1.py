"""Fig. 1: parallel synchronous SGD; every worker applies the averaged gradient to its own copy of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import settings
from paper_figures.crossbow.readings import results, telling
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def draw(evidence: Evidence, figure: Figure) -> None:
    """The gaps that a run of S-SGD on two workers left."""
    found = evidence.run("algebra").results
    gaps = {
        "copies of the model": found["synchronous_copies"],
        "mean of partial\ngradients": found["partial_gradients"],
    }
    axes = figure.subplots()
    floor = 1e-17
    axes.barh(list(gaps), [max(abs(gap), floor) for gap in gaps.values()], left=floor)
    axes.set_xscale("log")
    axes.set_xlim(floor, 1e-9)
    axes.axvline(1e-12, color="C1", linestyle="--", label="tolerance")
    axes.set_xlabel("largest difference (float64); a bar at the left end is zero")
    axes.legend()


ARTIFACTS = (
    Artifact(
        "crossbow/fig1",
        "Parallel synchronous SGD on two workers",
        runs,
        (measure,),
        draw,
        "Differences between the workers' models and between partial and whole gradients, all at rounding or zero.",
    ),
)
