"""The experiment ``matex_agd/workers``: what sections 4 and 5 state about several processes, on two of them.

Values (weights, buffers, reductions) come from real training over gloo; the two times are medians of sums timed
alternately in one run.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from reference_impls.contract import Pending
from suite.communication.collectives import CountingCollective, Processes
from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.experiment import Context
from suite.models import build, initialise
from suite.optim import DelayedSGD
from suite.optim.joining import part_of
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed

WORKERS, UPDATES, BATCH = 2, 6, 16
LARGE, BLOBS = 4_000_000, 64  # bytes of one sum, and the number of small ones it is cut into


@dataclass
class Kept(CountingCollective):
    """Counts the sums and keeps them, to see where they lie."""

    sums: list[Pending] = field(default_factory=list)

    def start(self, rows: Tensor, each: int | None = None) -> Pending:
        self.sums.append(super().start(rows, each))
        return self.sums[-1]


def replicas(group: Group, delay: int, run_seed: int) -> dict[str, Any]:
    """Train LeNet on this worker's part; what it started from, ended at, and used on the way."""
    network = build("caffe_lenet")
    initialise(network, seed(run_seed, "weights", group.rank))  # workers differ before the broadcast
    drawn = torch.cat([p.detach().reshape(-1) for p in network.parameters()])
    opt = DelayedSGD(network, lr=0.01, momentum=0.9, weight_decay=5e-4, delay=delay, fused=False, group=group)
    collective = opt.core.algorithm.collective
    assert isinstance(collective, Processes)
    counted = Kept(collective)
    opt.core.algorithm = replace(opt.core.algorithm, collective=counted)
    begun = opt.vector.x.clone()
    draw = torch.Generator().manual_seed(seed(run_seed, "images"))
    inputs, targets = torch.rand(256, 1, 28, 28, generator=draw), torch.randint(10, (256,), generator=draw)
    mine = torch.tensor(part_of(256, group))
    arrived: list[int] = []
    for parameter in network.parameters():
        parameter.register_post_accumulate_grad_hook(lambda _: arrived.append(len(counted.sizes)))
    memory: set[int] = set()  # where backward left the gradient of the first parameter, and so the whole one
    for t in range(UPDATES):
        rows = mine[(t * BATCH + torch.arange(BATCH)) % len(mine)]
        opt.zero_grad(set_to_none=False)
        nn.functional.cross_entropy(network(inputs[rows]), targets[rows]).backward()
        first = next(network.parameters()).grad
        assert first is not None
        memory.add(first.data_ptr())
        opt.step()
    per_update = len(arrived) // UPDATES
    early = [sums - place // per_update for place, sums in enumerate(arrived)]  # beyond one for each past update
    opt.finish()
    return {
        "drawn": drawn,
        "begun": begun,
        "ended": opt.vector.x.clone(),
        "reductions per update": len(counted.sizes) / UPDATES,
        "started before backward ended": sum(sums > 0 for sums in early),
        "gradient buffers": len(memory),
        "sums outside the gradient buffers": len({total.wait().data_ptr() for total in counted.sums} - memory),
        "lanes": len(collective.lanes),
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
