"""Table 4 trained on a stand-in for ImageNet: a narrow AlexNet, an eighth as wide, on CIFAR-100's pictures enlarged.

Its four rows are trained as sections 4.2 and 5.5 say: hardsync by momentum SGD, whose rate is 0.01 times the root of
an update's examples over the reference batch; 1-softsync by AdaGrad, from what an epoch of hardsync has learned.
Gradients arrive as under ImageNet's network, messages and seconds its own. What is ours was chosen before the runs:

- A gradient is of a quarter of the row's examples, and the reference batch 64 in place of 256. So few epochs then
  have enough updates for the network to learn. Learners, arrivals and staleness stay those of the row.
- Three epochs in place of 30, as many as the hours allow; the first of softsync's is that of hardsync. Section 5.5
  names two things in which softsync is trained otherwise, so that drops after half and five sixths are in all rows.
- The epoch of hardsync is that of base-hardsync in all rows, so that they begin alike.
- AdaGrad's initial rate is not printed. Of 0.001, 0.003 and 0.01 it is the one with which base-softsync alone ends
  lowest, by a run each, of four epochs and another seed.
- Caffe's multipliers of rates are left out, since the paper names none and our AdaGrad has none.

Mini-batches of 8 are not trained: their claim is a printed number, of which a stand-in says nothing.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import ceil, log
from typing import Any

from paper_figures.rudra import errors
from paper_figures.rudra.plans import TABLE4
from paper_figures.rudra.settings import IMAGENET_CONSTANTS, Configuration, imagenet_server, served, updates_of
from paper_figures.rudra.times import predicted
from reference_impls.rudra_protocol import hardsync_rate
from suite.claims.intervals import Interval, least, mean_interval
from suite.models.settings import narrow_alexnet
from suite.papers.artifact import Frame, Groups, Missing
from suite.spec import RunSpec

SYSTEMS = ("base-hardsync", "base-softsync", "adv-softsync", "adv-star-softsync")
"""The rows of Table 4, in the printed order of their errors."""

NAME = "narrow AlexNet, CIFAR-100"
QUARTER = 4
EPOCHS, WARM, SEEDS = 3, 1, 3
DROPS = ((15 / 30, 0.1), (25 / 30, 0.01))  # shares of all epochs (section 4.2)
RATE, REFERENCE_BATCH, DECAY = 0.01, 256 // QUARTER, 0.0005
ADAGRAD_RATE = 0.003


def trained_as(name: str) -> Configuration:
    """The configuration of one of the SYSTEMS, with a quarter of the row's examples."""
    _, n, batch, learners = TABLE4[f"{name}-time"]
    return n, batch // QUARTER, learners


def hardsync(configuration: Configuration) -> dict[str, Any]:
    """Solver and rate of a training by hardsync."""
    _, batch, learners = configuration
    rate = hardsync_rate(RATE, learners, batch, REFERENCE_BATCH)
    return {"descent": {"rule": "caffe", "momentum": 0.9, "decay": DECAY}, "rate": rate}


@cache
def training(name: str, seed: int) -> RunSpec:
    """The training of one of the SYSTEMS."""
    row, base = trained_as(name), trained_as("base-hardsync")
    before = WARM if row[0] else 0
    updates = updates_of(EPOCHS - before, row)
    seconds = IMAGENET_CONSTANTS | {"per_example": QUARTER * IMAGENET_CONSTANTS["per_example"]}
    settings: dict[str, Any] = {
        **narrow_alexnet(ADAGRAD_RATE, multipliers=False),
        **served(row, updates, imagenet_server(TABLE4[f"{name}-time"][0], **seconds)),
        "evaluate": {"every": ceil(updates / (EPOCHS - before))},
        "drops": [[updates_of(share * EPOCHS - before, row), factor] for share, factor in DROPS],
    }
    if not before:
        settings |= hardsync(row)
    else:
        warm = served(base, updates_of(WARM, base), {"architecture": "base", "tree": {}}) | hardsync(base)
        del warm["order"], warm["record"], warm["algorithm"]["name"]  # as in the training that follows
        settings["warmstart"] = warm | {"evaluate": {"test_examples": 100}}
        settings["descent"] = {"rule": "adagrad", "decay": DECAY}
    return RunSpec("rudra/train", settings, seed)


def groups(profile: str) -> Groups:
    """Three seeds of each row, at ``reduced`` alone."""
    if profile != "reduced":
        return {}
    return {name: tuple(training(name, seed) for seed in range(SEEDS)) for name in SYSTEMS}


def drawn(frame: Frame) -> bool:
    """Whether its rows are stored. Raises Missing at ``paper``, which trains none: ``reduced`` draws them."""
    if frame.profile == "paper":
        raise Missing("no training on ImageNet; its stand-in is drawn at reduced")
    return all(frame.results(name) for name in SYSTEMS)


def seeds(frame: Frame) -> int:
    """How many first seeds all rows have. Raises Missing for fewer than two, whose spread is not known."""
    count = min(len(frame.results(name)) for name in SYSTEMS)
    if count < 2:
        raise Missing("a single seed of each row says nothing of the spread between seeds")
    return count


def order(frame: Frame) -> list[Interval]:
    """Steps of the final error in points from each row to the next, with the spread between seeds of all four."""
    seeds(frame)
    samples = {name: errors.finals(frame, name, errors.chance("cifar100")) for name in SYSTEMS}
    return [errors.contrast({less: -1.0, more: 1.0}, samples, samples) for less, more in pairwise(SYSTEMS)]


Curve = list[tuple[float, float]]
"""(minutes, error) at every evaluation."""


def curves(frame: Frame) -> dict[str, list[Curve]]:
    """By row a curve for each stored seed: minutes are epochs times those of the row as the cost model predicts them.

    The epoch of hardsync before softsync takes the time of one of base-hardsync.
    """
    minutes = predicted(frame)
    found: dict[str, list[Curve]] = {}
    for name in SYSTEMS:
        row = TABLE4[f"{name}-time"]
        start = WARM * minutes[TABLE4["base-hardsync-time"]] if row[1] else 0.0
        found[name] = [
            [
                (start + epoch * minutes[row], float(error))
                for epoch, error in zip(table["epoch"], table["test_error"], strict=True)
            ]
            for table in (run.curve("evaluations") for run in frame.runs_of(name))
        ]
    return found


def minutes_to(curve: Curve, level: float) -> float:
    """When a curve first is at an error or below, on straight lines between evaluations; it has to come there."""
    for (before, higher), (after, lower) in pairwise([curve[0], *curve]):
        if lower <= level:
            share = (higher - level) / (higher - lower) if higher > level else 1.0
            return before + share * (after - before)
    raise ValueError(f"the curve does not come to an error of {level}")


def first(frame: Frame) -> Interval:
    """Log of the ratio of the times to an error: of another row to adv*-softsync, of the three the nearest.

    The error is, in each seed, the highest of the four with which the rows end, so that all of them reach it.
    """
    by_row, ratios = curves(frame), dict[str, list[float]]()
    for at in range(seeds(frame)):
        now = {name: by_row[name][at] for name in SYSTEMS}
        level = max(curve[-1][1] for curve in now.values())
        times = {name: minutes_to(curve, level) for name, curve in now.items()}
        for name in SYSTEMS[:-1]:
            ratios.setdefault(name, []).append(log(times[name] / times[SYSTEMS[-1]]))
    return least([mean_interval(each) for each in ratios.values()])


def note(frame: Frame) -> str:
    return f"{NAME}, {seeds(frame)} seeds"
