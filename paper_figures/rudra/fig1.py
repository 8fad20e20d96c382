"""Fig. 1: Rudra-base. Learners push gradients to one server and pull weights from it, one message at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.readings import counted
from paper_figures.rudra.simulations import messages
from paper_figures.rudra.systems import draw_system
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    return {"base": (messages(1, 4),), "async": (messages(30, 4),)}


def measure_messages(evidence: Evidence) -> Quantities:
    both = (evidence.run("base"), evidence.run("async"))
    book = [run.results for run in both]
    yield "pull-skipped-when-current", counted(sum(b["needless_pulls"] for b in book), *both)
    yield "message-size", counted(max(b["pushed_scalars"] for b in book), *both)
    single = all(b["overlapping_messages"] == 0 and b["served"] > 0 for b in book)
    yield "one-by-one", counted(float(single), *both)
    recorded = [
        sum(b["gradients_by_learner"]) == b["gradients"]
        and run.spec.settings["updates"] * b["gradients_per_update"][0] == b["gradients"]
        for run, b in zip(both, book, strict=True)
    ]
    yield "vector-clock-recorded", counted(float(all(recorded)), *both)


@counterfeit("rudra/fig1/pull-skipped-when-current", "rudra/fig1/one-by-one")
def careless_messages(evidence: Evidence) -> Evidence:
    """A learner pulls weights that it holds, and the server takes a message before it is done with the last."""
    return edited(evidence, lambda run: forged(run, {"needless_pulls": 1, "overlapping_messages": 1}), "base")


def draw(evidence: Evidence, figure: Figure) -> None:
    """The simulated system, and in dashed frames the servers of the paper's figure that are not simulated."""
    draw_system("base", figure)
    (axes,) = figure.axes
    frame = {"boxstyle": "round", "facecolor": "none", "linestyle": "--"}
    for height, name in ((1.0, "statistics server"), (0.86, "data server")):
        axes.text(0.85, height, f"{name} (not simulated)", ha="center", va="center", fontsize=8, bbox=frame)


ARTIFACTS = (
    Artifact(
        "rudra/fig1",
        "Rudra-base: learners and one parameter server",
        runs,
        (measure_messages,),
        draw,
        alt="Six learners, each sending gradients to one server and receiving weights from it.",
    ),
)
