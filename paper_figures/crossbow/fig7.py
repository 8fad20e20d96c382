"""Fig. 7: the parts of Crossbow: learners on streams that take batches and replicas from pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import results, telling
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> settings.Groups:
    return {"tasks": (settings.TASKS,)}


def measure(evidence: Evidence) -> Quantities:
    """A learner starts only once its replica is back, in both traces."""
    return results(evidence, "tasks", {"pools": ("virtual_learn_after_return", "recorded_learn_after_return")})


@counterfeit("crossbow/fig7/pools")
def replica_taken_early(evidence: Evidence) -> Evidence:
    """One learning task in ten starts while its replica is still being corrected."""
    return telling(evidence, "tasks", virtual_learn_after_return=0.9, recorded_learn_after_return=0.9)


def draw(evidence: Evidence, figure: Figure) -> None:
    plots.timelines(evidence, figure, "virtual")


ARTIFACTS = (
    Artifact(
        "crossbow/fig7",
        "Learners, streams and batches of a run",
        runs,
        (measure,),
        draw,
        plots.ALT_TIMELINES,
        (6.4, 3.4),
    ),
)
