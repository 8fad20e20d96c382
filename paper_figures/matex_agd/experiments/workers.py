"""The experiment ``matex_agd/workers``: what sections 4 and 5 state about several processes, on two of them.

Values (weights, buffers, reductions) come from real training over gloo; the two times are medians of sums timed
alternately in one run.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from reference_impls.matex_agd import DelayedSGD
from suite.communication.collectives import Counted, Processes
from suite.communication.group import Group
from suite.distributed.training import Training, share, spawn
from suite.experiment import Context
from suite.models import build, initialise
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed

WORKERS, UPDATES, BATCH = 2, 6, 16
LARGE, BLOBS = 4_000_000, 64  # bytes of one sum, and the number of small ones it is cut into


def replicas(group: Group, delay: int, run_seed: int) -> dict[str, Any]:
    """Train LeNet on this worker's part; what it started from, ended at, and used on the way."""
    network = build("caffe_lenet")
    initialise(network, seed(run_seed, "weights", group.rank))  # workers differ before the broadcast
    drawn = torch.cat([p.detach().reshape(-1) for p in network.parameters()])
    rule = partial(DelayedSGD, delay=delay)
    training = Training(network, group, rule, rate=0.01, momentum=0.9, decay=5e-4, examples=256)
    lanes, counted = training.collective.lanes, Counted(training.collective)
    training.algorithm = replace(training.algorithm, collective=counted)
    begun = training.flat.point()
    draw = torch.Generator().manual_seed(seed(run_seed, "images"))
    inputs, targets = torch.rand(256, 1, 28, 28, generator=draw), torch.randint(10, (256,), generator=draw)
    mine = torch.tensor(share(256, group))
    arrived: list[int] = []
    for place, parameter in enumerate(network.parameters()):
        parameter.register_post_accumulate_grad_hook(lambda _, place=place: arrived.append(len(counted.sizes)))
    memory = {buffer.data_ptr() for buffer in training.gradient_buffers}
    for t in range(UPDATES):
        rows = mine[(t * BATCH + torch.arange(BATCH)) % len(mine)]
        training.update(nn.functional.cross_entropy(network(inputs[rows]), targets[rows]))
    per_update = len(arrived) // UPDATES
    early = [sums - place // per_update for place, sums in enumerate(arrived)]  # beyond one for each past update
    in_flight = {pending.wait().data_ptr() for sent in training.state.late for _, pending in sent}
    training.finish()
    return {
        "drawn": drawn,
        "begun": begun,
        "ended": training.flat.point(),
        "reductions per update": len(counted.sizes) / UPDATES,
        "started before backward ended": sum(sums > 0 for sums in early),
        "gradient buffers": len(memory),
        "sums outside the gradient buffers": len(in_flight - memory),
        "lanes": len(lanes),
    }


def timed_sums(group: Group, repeats: int = 15) -> dict[str, list[float]]:
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
    for repeat in range(repeats + 2):
        for name, action in actions.items():
            collective.sum(bias)  # both workers are here
            began = time.perf_counter()
            action()
            if repeat >= 2:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def body(group: Group, run_seed: int) -> dict[str, Any]:
    """Everything in one start of the processes."""
    found = {"synchronous": replicas(group, 0, run_seed)}
    for delay in (1, 2, 3):
        found[f"delay {delay}"] = replicas(group, delay, run_seed)
    return {**found, "times": timed_sums(group)}


def workers(spec: RunSpec, context: Context) -> Outcome:
    """Start the processes and compare what they hold."""
    first, second = spawn(body, WORKERS, spec.seed, timeout=60)
    results: dict[str, Any] = {}
    for name in ("synchronous", "delay 1", "delay 2", "delay 3"):
        a, b = first[name], second[name]
        results |= {
            f"{name}/drawn apart": float((a["drawn"] - b["drawn"]).abs().max()),
            f"{name}/begun apart": float((a["begun"] - b["begun"]).abs().max()),
            f"{name}/ended apart": float((a["ended"] - b["ended"]).abs().max()),
            f"{name}/moved": float((a["ended"] - a["begun"]).abs().max()),
        }
        results |= {f"{name}/{key}": value for key, value in a.items() if not isinstance(value, torch.Tensor)}
    for name, seconds in first["times"].items():
        results[f"seconds/{name}"] = statistics.median(seconds)
    pairs = zip(first["times"]["many small"], first["times"]["one large"], strict=True)
    results["many small over one large"] = [many / one for many, one in pairs]
    pairs = zip(first["times"]["weights"], first["times"]["bias"], strict=True)
    results["weights over bias"] = [weight / bias for weight, bias in pairs]
    return Outcome("finished", results)
