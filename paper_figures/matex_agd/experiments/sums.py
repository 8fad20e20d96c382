"""The experiment ``matex_agd/workers``: seconds of sums between two processes, timed alternately over gloo."""

from __future__ import annotations

import time

import torch

from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.experiment import Context, Outcome, RunSpec

WORKERS, REPEATS = 2, 15
LARGE, BLOBS = 4_000_000, 64  # bytes of one sum, and the number of small ones it is cut into


def timed_sums(group: Group) -> dict[str, list[float]]:
    """Seconds of a weight sum, a bias sum (LeNet's ip1), one large sum and the same in many small ones."""
    collective = Processes(group)
    weights, bias = torch.ones(1, 400_000), torch.ones(1, 500)
    large = torch.ones(1, LARGE // 4)

    def many() -> None:
        for flight in [collective.start(part) for part in large.chunk(BLOBS, 1)]:
            flight.wait()

    actions = {
        "weights": lambda: collective.sum(weights),
        "bias": lambda: collective.sum(bias),
        "one large": lambda: collective.sum(large),
        "many small": many,
    }
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for repeat in range(REPEATS + 2):
        for name, action in actions.items():
            collective.sum(bias)  # both workers are here
            began = time.perf_counter()
            action()
            if repeat >= 2:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def sums(spec: RunSpec, context: Context) -> Outcome:
    """Ratios of seconds by repetition, as the first of two processes saw them."""
    first, _ = spawn(timed_sums, WORKERS, timeout=60)
    results = {}
    for above, below in (("many small", "one large"), ("weights", "bias")):
        pairs = zip(first[above], first[below], strict=True)
        results[f"{above} over {below}"] = [one / other for one, other in pairs]
    return Outcome("finished", results)
