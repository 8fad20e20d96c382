"""Fig. 3: Rudra-adv*. Gradients go up the tree of servers as in Rudra-adv; weights come down a tree of learners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.groups import tree_groups
from paper_figures.rudra.plots import draw_system
from paper_figures.rudra.readings import counted, simulated
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    return tree_groups()


def measure_broadcast(evidence: Evidence) -> Quantities:
    adv, star = evidence.run("adv"), evidence.run("adv*")
    yield "push-ordered", counted(star.results["out_of_order"], star)
    yield "mu-unchanged", counted(star.results["gradients"] / star.results["batches_applied"], star)
    yield "staleness-higher", simulated(star.results["mean"] - adv.results["mean"], adv, star)


def draw(evidence: Evidence, figure: Figure) -> None:
    draw_system("adv*", figure)


ARTIFACTS = (
    Artifact(
        "rudra/fig3",
        "Rudra-adv*: weights broadcast down a tree of learners",
        runs,
        (measure_broadcast,),
        draw,
        alt="Gradients go up a tree of servers; weights go from the root to learner 0 and down a tree of learners.",
    ),
)
