"""Fig. 3: Rudra-adv*. Gradients go up the tree of servers as in Rudra-adv; weights come down a tree of learners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.groups import tree_groups
from paper_figures.rudra.readings import counted, simulated
from paper_figures.rudra.systems import draw_system
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.counterfeits import counterfeit, edited, exchanged, forged

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    return tree_groups()


def measure_broadcast(evidence: Evidence) -> Quantities:
    adv, star = evidence.run("adv"), evidence.run("adv*")
    yield "push-ordered", counted(star.results["out_of_order"], star)
    yield "mu-unchanged", counted(star.results["gradients"] / star.results["batches_applied"], star)
    yield "staleness-higher", simulated(star.results["mean"] - adv.results["mean"], adv, star)


@counterfeit("rudra/fig3/push-ordered")
def gradient_overtaken(evidence: Evidence) -> Evidence:
    return edited(evidence, lambda run: forged(run, {"out_of_order": 1}), "adv*")


@counterfeit("rudra/fig3/staleness-higher")
def systems_exchanged(evidence: Evidence) -> Evidence:
    return exchanged(evidence, "adv", "adv*")


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
