"""Fig. 2: Rudra-adv. A tree of servers averages gradients on their way; leaves stand beside their learners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.groups import tree_groups
from paper_figures.rudra.plots import draw_system
from paper_figures.rudra.readings import counted, simulated
from suite.claims.measured import exact
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    return tree_groups()


def measure_tree(evidence: Evidence) -> Quantities:
    same, adv = evidence.run("identities"), evidence.run("adv")
    yield "tree-average", exact(same.results["tree"], runs=[same.id])
    # servers that hold a shard each would attach several timestamps to one gradient
    yield "one-timestamp", counted(adv.results["timestamps_per_gradient"], adv)


def measure_times(evidence: Evidence) -> Quantities:
    run = evidence.run("times")
    yield "push-10ms", simulated(1000 * run.results["push_seconds"], run)
    yield "incast-1s", simulated(run.results["incast_seconds"], run)


def draw(evidence: Evidence, figure: Figure) -> None:
    draw_system("adv", figure)


ARTIFACTS = (
    Artifact(
        "rudra/fig2",
        "Rudra-adv: a tree of servers, leaves beside their learners",
        runs,
        (measure_tree, measure_times),
        draw,
        alt="Twelve learners beneath three leaves beneath a root; gradients go up and weights come down the tree.",
    ),
)
