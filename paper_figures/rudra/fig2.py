"""Fig. 2: Rudra-adv. A tree of servers averages gradients on their way; leaves stand beside their learners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.groups import tree_groups
from paper_figures.rudra.readings import counted
from paper_figures.rudra.settings import INTERCONNECT
from paper_figures.rudra.systems import draw_system
from suite.claims.measured import exact, interval
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODEL_BYTES, PUSHES = 300_000_000, 16  # of the example in section 3.3


def runs(profile: str) -> Groups:
    return tree_groups()


def measure_tree(evidence: Evidence) -> Quantities:
    same, adv = evidence.run("identities"), evidence.run("adv")
    yield "tree-average", exact(same.results["tree"], runs=[same.id])
    # servers that hold a shard each would attach several timestamps to one gradient
    yield "one-timestamp", counted(adv.results["timestamps_per_gradient"], adv)


def measure_times(evidence: Evidence) -> Quantities:
    """One push over an idle link at the printed bandwidth; sixteen with what contention may leave of it.

    The paper prints nothing of contention. At most there is none; the bandwidth that the times of Table 4 imply,
    contention and whatever else the cost model lacks included, is taken for the other end.
    """
    idle = MODEL_BYTES / INTERCONNECT
    yield "push-10ms", exact(1000 * idle)
    run = evidence.run("times")
    ends = [PUSHES * idle, run.results["incast_seconds"]]
    note = "from the printed bandwidth to the one that Table 4 implies"
    yield "incast-1s", interval(ends[1], min(ends), max(ends), runs=[run.id], note=note)


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
