"""Fig. 1: Rudra-base. Learners push gradients to one server and pull weights from it, one message at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.plots import draw_system
from paper_figures.rudra.readings import counted
from paper_figures.rudra.simulations import messages
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

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


def draw(evidence: Evidence, figure: Figure) -> None:
    draw_system("base", figure)


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
