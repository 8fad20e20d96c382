"""Fig. 7: error against time under softsync with (a) n = lambda, the stalest, and (b) n = 1, the least stale."""

from __future__ import annotations

from paper_figures.rudra import errors, times
from paper_figures.rudra.drawing import draw_tradeoff, panel
from paper_figures.rudra.plans import clock, messages, training_groups
from paper_figures.rudra.settings import LEARNERS, MANY, grid
from suite.papers.figure import Frame, Groups


def runs_a(profile: str) -> Groups:
    return {
        **times.cifar(),
        **training_groups(profile, [*grid("lambda-softsync"), (0, 128, 30)]),
        "mu 4": tuple(messages(k, 4, k, 30_000) for k in MANY),
        "alike": tuple(clock(k, k, gradients=30_000) for k in MANY),
    }


def runs_b(profile: str) -> Groups:
    return {
        **times.cifar(),
        **training_groups(profile, grid("1-softsync")),
        "zero jitter": tuple(clock(1, k, jitter=0.0, gradients=30_000) for k in LEARNERS),
        "pulls": (messages(1, 4), messages(30, 4)),
        **training_groups(profile, [(30, 4, 30), (30, 128, 30), (2, 4, 2), (2, 128, 2)]),
    }


FIG7A, FIG7B = panel("fig7a", "lambda-softsync", runs_a), panel("fig7b", "1-softsync", runs_b)

STALEST = (30, 128, 30)
FIG7A.quantities["degradation-larger"] = errors.steps((0, 128, 30), STALEST)
FIG7A.quantities["mitigated-by-small-mu"] = errors.steps((30, 4, 30), STALEST)
FIG7A.quantities["mu4-immune"] = errors.worst(*((k, 4, k) for k in LEARNERS))
CORNERS = [(mu, k) for mu in (4, 128) for k in (2, 30)]
FIG7B.quantities["like-lambda-softsync"] = errors.differences(*(((k, mu, k), (1, mu, k)) for mu, k in CORNERS))


@FIG7B.quantity("staleness-one", ["zero jitter"])
def mean_staleness(frame: Frame) -> list[float]:
    """Average staleness of 1-softsync for each number of learners, which take equally long."""
    return [float(run["mean"]) for run in frame.results("zero jitter")]


FIG7A.drawing(lambda frame, figure: draw_tradeoff("lambda-softsync", frame, figure))
FIG7B.drawing(lambda frame, figure: draw_tradeoff("1-softsync", frame, figure))
