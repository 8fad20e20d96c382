"""The experiment ``matex_agd/link``: every way of exchanging, over a real link of several speeds.

Two one-thread workers in network namespaces train either a network that computes (LeNet) or one that sleeps. All
methods take turns in one run, in blocks of a few updates, and what counts is the ratio to *no communication* in
the same repetition. PyTorch's DistributedDataParallel is the rival, with the same bucket size, link and threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import torch
import torch.distributed as dist
from torch import nn

from paper_figures.matex_agd.stand_in import LAYERS, sleeping
from reference_impls import matex_agd
from suite import netlab
from suite.collectives import Processes
from suite.distributed import Training, spawn
from suite.experiments import Context
from suite.models import build, initialise
from suite.overlap import AllReduce, Layer, Network, rates
from suite.processes import Group
from suite.spec import RunSpec, thaw
from suite.store import Outcome

BUCKET = 256 * 1024  # bytes, for layer-wise in buckets and for DDP
UPDATES, WARM = 6, 4  # timed and untimed updates of a block
METHODS: dict[str, tuple[matex_agd.Config, int]] = {
    "SGD": (matex_agd.Config(), 0),
    "layer-wise, backward": (matex_agd.Config(segmented=True, order="backward"), 0),
    "layer-wise, completed": (matex_agd.Config(segmented=True, order="completed"), 0),
    "layer-wise, buckets": (matex_agd.Config(segmented=True, order="backward"), BUCKET),
    "AGD 1 comm": (matex_agd.Config(1), 0),
    "AGD 2 comm": (matex_agd.Config(2), 0),
    "AGD 3 comm": (matex_agd.Config(3), 0),
}
Step = Callable[[], None]


def lenet() -> nn.Module:
    module = build("caffe_lenet")
    initialise(module, 0)
    return module


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "sleeping": (sleeping, (1,)),
    "computing": (lenet, (8, 1, 28, 28)),
}


def _update(training: Training, inputs: torch.Tensor) -> None:
    training.update(training.module(inputs).square().mean())


def steps(group: Group, workload: str) -> dict[str, tuple[Step, Step]]:
    """By method: one update, and what ends a block (drain), each on a network of its own."""
    make, shape = NETWORKS[workload]
    inputs = torch.rand(shape)
    made: dict[str, tuple[Step, Step]] = {}
    alone = Group(dist.HashStore(), 0, 1, group.timeout, group.backend)
    cases = {"no comm": (alone, *METHODS["SGD"])} | {name: (group, *case) for name, case in METHODS.items()}
    for name, (members, config, bucket) in cases.items():
        module = make()
        training = Training(
            module, members, matex_agd, config, rate=1e-3, momentum=0.9, decay=5e-4, bucket_bytes=bucket
        )
        made[name] = (partial(_update, training, inputs), training.finish)
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


def predicted(compute_seconds: float, latency: float, speed: float) -> dict[str, float]:
    """The cost model's rates for the sleeping network; ``compute_seconds`` is no communication as measured.

    What the update of weights costs is the part of that which is not sleep, spread over the numbers it moves.
    """
    asleep = 3 * sum(seconds for _, seconds in LAYERS)
    numbers = sum(n + 100 for n, _ in LAYERS)
    rest = max(0.0, compute_seconds - asleep)
    layers = tuple(Layer(s, 2 * s, (4.0 * n, 400.0), apply=rest * (n + 100) / numbers) for n, s in LAYERS)
    cost = AllReduce(0.0, speed / 8 * netlab.PAYLOAD, 2, "ring", call=latency)
    return rates(Network(layers), cost)


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
    forecasts = []
    for speed in settings["speeds"]:
        seen = tables["sleeping"]
        seen = seen[seen["speed"] == speed].groupby("method")["seconds"].median()
        forecast = predicted(seen["no comm"], seen["empty sum"], speed)
        forecasts += [{"speed": speed, "method": name, "rate": rate} for name, rate in forecast.items()]
    return Outcome("finished", {"skipped": ""}, {**tables, "predicted": pd.DataFrame(forecasts)})
