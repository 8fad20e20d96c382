"""Fig. 6: under hardsync more learners save time and cost accuracy, and smaller mini-batches win it back."""

from __future__ import annotations

from math import log

from paper_figures.rudra import errors, times
from paper_figures.rudra.drawing import draw_tradeoff, panel
from paper_figures.rudra.plans import THROUGHPUT, training_groups
from paper_figures.rudra.settings import LEARNERS, grid
from suite.claims.intervals import Interval, log_interval, mean_interval
from suite.papers.artifact import Frame

PANEL = panel(
    "fig6",
    "hardsync",
    lambda profile: {**times.cifar(), **training_groups(profile, grid("hardsync")), "throughput": (THROUGHPUT,)},
)

PANEL.quantities["hardsync-error"] = errors.mean((0, 128, 30))
PANEL.quantities["hardsync-error-of-ten"] = errors.mean((0, 128, 10))
PANEL.quantities["restore-by-small-mu"] = errors.steps((0, 4, 30), (0, 128, 30))
PANEL.quantities["small-mu-lower-error"] = errors.mean((0, 4, 1))
PANEL.quantities["error-rises-with-lambda"] = errors.steps(*((0, 128, learners) for learners in LEARNERS))


@PANEL.quantity("small-mu-longer", ["throughput"])
def longer(frame: Frame) -> Interval:
    """Seconds of an example at mu = 4 over those at mu = 128, pair by pair of measurements that alternate."""
    return log_interval(frame.one("throughput")["training_ratios"])


@PANEL.quantity("gemm-throughput", ["throughput"])
def faster(frame: Frame) -> Interval:
    """Logarithm of the rate of matrix products at mu = 128 over that at mu = 4, pair by pair."""
    return mean_interval([log(ratio) for ratio in frame.one("throughput")["product_ratios"]])


PANEL.drawing(lambda frame, figure: draw_tradeoff("hardsync", frame, figure))
