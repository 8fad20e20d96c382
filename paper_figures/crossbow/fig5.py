"""Fig. 5: two replicas on their ways to a minimum, with the central average model between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import results, telling
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def runs(profile: str) -> settings.Groups:
    return {"algebra": (settings.ALGEBRA,)}


def measure(evidence: Evidence) -> Quantities:
    return results(evidence, "algebra", {"pull": "pull", "agree": "agreement_end"})


@counterfeit("crossbow/fig5/pull", "crossbow/fig5/agree")
def corrections_push(evidence: Evidence) -> Evidence:
    """A correction takes a replica as far away as it now brings it near, and nobody ever agrees."""
    found = evidence.run("algebra").results
    return telling(evidence, "algebra", pull=1 / found["pull"], agreement_end=found["agreement_start"])


def frame(evidence: Evidence) -> pd.DataFrame:
    """A row per iteration and model: where it stood."""
    return evidence.run("algebra").curve("paths")


def draw(evidence: Evidence, figure: Figure) -> None:
    plots.paths(evidence, figure.subplots())


ARTIFACTS = (
    Artifact(
        "crossbow/fig5",
        "Two replicas tracking the central average model",
        runs,
        (measure,),
        draw,
        "Paths of two replicas and of the average model on a quadratic, with arrows for the corrections.",
        frame=frame,
    ),
)
