"""Seconds that a method would take for so many rounds at three links, by the suite's cost models.

A *round* is one gradient of every learner at once. The model has k learners on k devices: a gradient takes each the
task's ``gradient_seconds``, messages cross a link, and what overlaps is what the method's paper overlaps. These are
round numbers. How much less or more an image takes in a batch of another size was measured
(``Task.update_seconds``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from paper_figures.together.tasks import Task
from suite.cost_models import AllReduce, LayerTimes, NetworkTimes, delayed, layer_wise
from suite.spec import canonical

BYTES = 4  # of a parameter
LINKS = {  # seconds a message, bytes a second
    "1 Gb/s": (50e-6, 0.125e9),
    "10 Gb/s": (20e-6, 1.25e9),
    "100 Gb/s": (5e-6, 12.5e9),
}
MIDDLE = "10 Gb/s"  # at which the order of a server's gradients is drawn
JITTER = 0.1  # coefficient of variation of a gradient's seconds, of a server's learners


@dataclass(frozen=True)
class Costs:
    """What a method's rounds cost on a task with ``learners`` over a link."""

    task: Task
    learners: int
    link: str
    settings: Mapping[str, Any]  # of the training whose seconds are asked for

    @property
    def compute(self) -> float:
        return self.task.gradient_seconds

    @property
    def all_reduce(self) -> AllReduce:
        latency, bandwidth = LINKS[self.link]
        return AllReduce(latency, bandwidth, self.learners)

    @property
    def exchange(self) -> float:
        """One sum of all parameters over the learners, with nothing else under way."""
        return self.all_reduce.seconds(BYTES * self.task.parameters)

    @property
    def network(self) -> NetworkTimes:
        """The task's layers: two thirds of a gradient's seconds are backward's, shared by operations."""
        operations = sum(count for count, _ in self.task.layers)
        return NetworkTimes(
            tuple(
                LayerTimes(
                    self.compute / 3 * count / operations, self.compute * 2 / 3 * count / operations, (BYTES * held,)
                )
                for count, held in self.task.layers
            )
        )


def alone(costs: Costs, rounds: float) -> float:
    """Gradients one after another, at the measured cost of an image in a batch of their size."""
    task, size = costs.task, costs.settings.get("batch", costs.task.batch)
    if size == task.batch:
        return rounds * costs.compute
    measured = task.update_seconds
    return rounds * costs.compute * (measured[size] / size) / (measured[task.batch] / task.batch)


def blocking(costs: Costs, rounds: float) -> float:
    """A sum after every gradient, and nothing meanwhile."""
    return rounds * (costs.compute + costs.exchange)


def layers(costs: Costs, rounds: float) -> float:
    """Sums of each layer's gradients behind backward (MaTEx, section 4.2)."""
    return rounds * layer_wise(costs.network, costs.all_reduce)


def behind(costs: Costs, rounds: float) -> float:
    """A sum that has the next iteration to arrive (MaTEx, section 4.3)."""
    return rounds * delayed(costs.network, costs.all_reduce, 1)


def overlapped(costs: Costs, rounds: float) -> float:
    """Corrections are known before the gradient, so that their sum passes beside it (Crossbow, section 4.3)."""
    return rounds * max(costs.compute, costs.exchange)


def local(costs: Costs, rounds: float) -> float:
    """A sum after every H rounds."""
    return rounds * costs.compute + rounds / costs.settings["algorithm"]["h"] * costs.exchange


def post_local(costs: Costs, rounds: float) -> float:
    """A sum after every round before the switch, after every H from there on."""
    algorithm = costs.settings["algorithm"]
    early = min(rounds, algorithm["switch"])
    return rounds * costs.compute + (early + (rounds - early) / algorithm["h"]) * costs.exchange


def served(costs: Costs, rounds: float) -> float:
    """Virtual seconds of a server until so many gradients a learner have been applied (Rudra, section 3.1).

    It is under the training's n-softsync, or waits for all learners (hardsync).
    """
    n = costs.settings["algorithm"].get("n", 0)
    gathered = costs.learners // max(1, n)
    task, updates = costs.task, max(1, round(rounds * costs.learners / gathered))
    known, coming = arrivals(costs.learners, n, task.batch, canonical(server(task, costs.link)))
    known += islice(coming, max(0, updates - len(known)))
    return known[updates - 1]


@cache
def arrivals(learners: int, n: int, batch: int, settings: str) -> tuple[list[float], Iterator[float]]:
    """When a server's updates are made, in virtual seconds: a list that grows, and those that are not in it yet.

    ``settings`` are JSON.
    """
    from suite.parameter_server.simulation import simulation

    waves = simulation(json.loads(settings), learners, n, batch, 0)
    return [], (seconds for seconds, _ in waves)


def server(task: Task, link: str = MIDDLE) -> dict[str, Any]:
    """Settings of Rudra-base with each learner on a machine of its own."""
    latency, bandwidth = LINKS[link]
    return {
        "architecture": "base",
        "seconds": {
            "per_call": 0.0,
            "per_example": task.gradient_seconds / task.batch,
            "crowding": 0.0,
            "jitter": JITTER,
        },
        "machines": 64,
        "model_bytes": BYTES * task.parameters,
        "network": [latency, bandwidth],
        "memory": [latency, bandwidth],
        "update_seconds": 0.0,
    }


TIMES: dict[str, Callable[[Costs, float], float]] = {
    "alone": alone,
    "blocking": blocking,
    "layer-wise": layers,
    "delayed": behind,
    "overlapped": overlapped,
    "local": local,
    "post-local": post_local,
    "hardsync": served,
    "softsync": served,
}
