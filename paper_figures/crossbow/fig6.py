"""Fig. 6: averaging on two levels; a reference model per GPU stands for its replicas between the GPUs."""

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
    return results(evidence, "algebra", {"one-reference": "references", "inter-gpu-traffic": "traffic"})


@counterfeit("crossbow/fig6/inter-gpu-traffic")
def every_replica_sent(evidence: Evidence) -> Evidence:
    """Two levels send what the flat form sends."""
    return telling(evidence, "algebra", traffic=evidence.run("algebra").results["flat_traffic"])


def draw(evidence: Evidence, figure: Figure) -> None:
    """Numbers that cross between devices for each number of learners, flat and with two levels."""
    axes = figure.subplots()
    found = evidence.run("algebra").results
    learners = (1, 2, 4)
    axes.plot(learners, found["traffic"], marker="o", label="two levels: one reference per GPU")
    axes.plot(learners, found["flat_traffic"], marker="s", label="flat, every replica sent")
    axes.set_xticks(learners)
    axes.set_xlabel("learners per GPU")
    axes.set_ylabel("sent by a GPU / sent at one learner")
    axes.legend()


ARTIFACTS = (
    Artifact(
        "crossbow/fig6",
        "Two-level synchronisation with one reference model per GPU",
        runs,
        (measure,),
        draw,
        "What a GPU sends stays constant with two levels and grows with its learners without.",
    ),
)
