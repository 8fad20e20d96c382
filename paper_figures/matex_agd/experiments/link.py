"""The experiment ``matex_agd/link``: every way of exchanging, over a real link of several speeds.

Two one-thread workers in network namespaces train either a network that computes (LeNet) or one that sleeps
instead, so that overlap is not spoiled by two threads on one core. All methods take turns in one run, in blocks of
a few updates, and what counts is the ratio to *no communication* in the same repetition. PyTorch's
DistributedDataParallel is the rival, with the same bucket size, link and threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import torch
import torch.distributed as dist
from torch import Tensor, nn

from paper_figures.matex_agd.link_readings import ASLEEP
from suite.communication import link as netlab
from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.experiment import Context
from suite.models import build, initialise
from suite.optim import DelayedSGD
from suite.runs.store import Outcome
from suite.spec import RunSpec, thaw

BUCKET = 256 * 1024  # bytes, for layer-wise in buckets and for DDP
UPDATES, WARM = 6, 4  # timed and untimed updates of a block
METHODS: dict[str, dict[str, Any]] = {
    "SGD": {},
    "layer-wise, backward": {"layerwise": True},
    "layer-wise, completed": {"layerwise": True, "order": "completed"},
    "layer-wise, buckets": {"layerwise": True, "bucket_bytes": BUCKET},
    "AGD 1 comm": {"delay": 1},
    "AGD 2 comm": {"delay": 2},
    "AGD 3 comm": {"delay": 3},
}
Step = Callable[[], None]


class _Sleep(torch.autograd.Function):
    """Takes ``seconds`` forward and twice that backward, and gives its parameters a gradient of ones."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, seconds: float) -> Tensor:
        time.sleep(seconds)
        ctx.seconds, ctx.shapes = seconds, (weight.shape, bias.shape)
        return x + 0

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        time.sleep(2 * ctx.seconds)
        one = grads[0].new_ones(())
        weight, bias = ctx.shapes
        return grads[0], one.expand(weight), one.expand(bias), None


class SleepingLayer(nn.Module):
    """``[B] -> [B]``; holds ``numbers`` weights and 100 biases, whose sums are what travels."""

    def __init__(self, numbers: int, seconds: float):
        super().__init__()
        self.seconds = seconds
        self.weight, self.bias = nn.Parameter(torch.zeros(numbers)), nn.Parameter(torch.zeros(100))

    def forward(self, x: Tensor) -> Tensor:
        return _Sleep.apply(x, self.weight, self.bias, self.seconds)


def sleeping() -> nn.Sequential:
    """450,600 numbers (1.8 MB), 12 ms forward and 24 ms backward."""
    return nn.Sequential(*(SleepingLayer(numbers, seconds) for numbers, seconds in ASLEEP))


def lenet() -> nn.Module:
    module = build("caffe_lenet")
    initialise(module, 0)
    return module


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "sleeping": (sleeping, (1,)),
    "computing": (lenet, (8, 1, 28, 28)),
}


def _update(opt: DelayedSGD, inputs: Tensor) -> None:
    opt.zero_grad(set_to_none=False)  # no copies of gradients, as DDP with views of its buckets
    opt.module(inputs).square().mean().backward()
    opt.step()


def steps(group: Group, workload: str) -> dict[str, tuple[Step, Step]]:
    """By method: one update, and what ends a block (drain), each on a network of its own."""
    make, shape = NETWORKS[workload]
    inputs = torch.rand(shape)
    made: dict[str, tuple[Step, Step]] = {}
    alone = Group(dist.HashStore(), 0, 1, group.timeout, group.backend)
    solver: dict[str, Any] = {"lr": 1e-3, "momentum": 0.9, "weight_decay": 5e-4, "fused": False}
    cases = {"no comm": (alone, METHODS["SGD"])} | {name: (group, case) for name, case in METHODS.items()}
    for name, (members, case) in cases.items():
        opt = DelayedSGD(make(), group=members, **solver, **case)
        made[name] = (partial(_update, opt, inputs), opt.finish)
    rival = nn.parallel.DistributedDataParallel(make(), bucket_cap_mb=BUCKET / 2**20, gradient_as_bucket_view=True)
    optimiser = torch.optim.SGD(rival.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4)

    def update() -> None:
        optimiser.zero_grad(set_to_none=True)
        rival(inputs).square().mean().backward()
        optimiser.step()

    made["PyTorch DDP"] = (update, lambda: None)
    return made


def measure(
    group: Group, interfaces: tuple[str, str], workload: str, speeds: list[float], repeats: int
) -> list[dict[str, Any]]:
    """Seconds per update by speed, repetition and method, and of a sum of four bytes."""
    rows: list[dict[str, Any]] = []
    methods = steps(group, workload)
    together = Processes(group)
    signal = torch.zeros(1, 1)
    for speed in speeds:
        netlab.shape(interfaces[group.rank], speed)
        for repeat in range(repeats + 1):
            for name, (update, finish) in methods.items():
                together.sum(signal)
                for _ in range(WARM):  # no pause follows: it would let delayed sums land before the clock starts
                    update()
                began = time.perf_counter()
                for _ in range(UPDATES):
                    update()
                seconds = (time.perf_counter() - began) / UPDATES
                finish()
                together.sum(signal)
                if repeat:  # the first repetition warms up
                    rows.append({"speed": speed, "repeat": repeat, "method": name, "seconds": seconds})
            began = time.perf_counter()
            for _ in range(10):
                together.sum(signal)
            empty = (time.perf_counter() - began) / 10
            rows.append({"speed": speed, "repeat": repeat, "method": "empty sum", "seconds": empty})
    return rows


def link(spec: RunSpec, context: Context) -> Outcome:
    """Ratios to no communication over the speeds asked for. Where there is no lab, stores the reason instead."""
    settings = thaw(spec.settings)
    try:
        with netlab.lab() as lab:
            tables = {}
            for place, workload in enumerate(NETWORKS):
                first, _ = spawn(
                    measure, 2, lab.interfaces, workload, settings["speeds"], settings["repeats"],
                    timeout=60, prefix=lab.prefix, environment=lab.environment,
                )  # fmt: skip
                tables[workload] = pd.DataFrame(first)
                context.report((place + 1) / len(NETWORKS))
    except netlab.NoLab as error:
        return Outcome("finished", {"skipped": str(error)})
    return Outcome("finished", {"skipped": ""}, tables)
