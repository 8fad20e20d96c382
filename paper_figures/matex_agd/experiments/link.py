"""The experiments ``matex_agd/link`` and ``matex_agd/hosts``: every way of exchanging, over real links.

One-thread workers in network namespaces train either a network that computes (LeNet) or one that sleeps instead, so
that overlap is not spoiled by several threads on one core. All methods take turns in one run, in blocks of a few
updates, and what counts is the ratio to *no communication* in the same repetition.

``link`` has two workers and several speeds, with PyTorch's DistributedDataParallel as the rival. ``hosts`` has two
to eight, which sleep for what a layer of the paper's network takes on one of its machines: time is dilated and
tensors are shrunk, both evenly and the link with them, so that computing over exchanging is that of the machine.

On hosts networks compute by sleeping, and exchange gradients that are really there.

The experiment ``matex_agd/workers`` has sums between two processes alone, timed alternately over gloo.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise, zip_longest
from typing import Any

import pandas as pd
import torch
import torch.distributed as dist
from torch import Tensor, nn

from paper_figures.matex_agd.exchanges import ASLEEP, PAPERS, asleep, layer_costs
from paper_figures.matex_agd.experiments.layers import measure as layers_of
from suite.communication import link as netlab
from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.communication.link import Device
from suite.cost_models import LayerTimes, NetworkTimes, Setting, network
from suite.experiment import Context, Outcome, in_lab
from suite.models import build, initialise
from suite.optim import DelayedSGD
from suite.spec import RunSpec, thaw


class _Sleep(torch.autograd.Function):
    """Takes a layer's seconds, and gives its parameters gradients of ones."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: SleepingLayer, *tensors: Tensor) -> Tensor:
        layer.device.compute(layer.seconds[0])
        ctx.layer, ctx.shapes = layer, [tensor.shape for tensor in tensors]
        return x + 0

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        ctx.layer.device.compute(ctx.layer.seconds[1])
        one = grads[0].new_ones(())
        return grads[0], None, *(one.expand(shape) for shape in ctx.shapes)


class SleepingLayer(nn.Module):
    """``[B] -> [B]``; holds tensors of so many ``numbers``, whose sums are what travels."""

    def __init__(self, numbers: tuple[int, ...], forward: float, backward: float, device: Device):
        super().__init__()
        self.seconds, self.device = (forward, backward), device
        self.tensors = nn.ParameterList(torch.zeros(n) for n in numbers)

    def forward(self, x: Tensor) -> Tensor:
        slept: Tensor = _Sleep.apply(x, self, *self.tensors)
        return slept


class SleepingNetwork(nn.Module):
    """``[B] -> [B]``; the layers of a cost model's network, with their seconds and tensors."""

    def __init__(self, network: NetworkTimes):
        super().__init__()
        self._device = Device()
        self.layers = nn.Sequential(
            *(
                SleepingLayer(tuple(round(size / 4) for size in n.tensors), n.forward, n.backward, self._device)
                for n in network.layers
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        self._device.begin()
        slept: Tensor = self.layers(x)
        return slept


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


def lenet() -> nn.Module:
    module = build("caffe_lenet")
    initialise(module, 0)
    return module


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "sleeping": (partial(SleepingNetwork, NetworkTimes(asleep(ASLEEP))), (1,)),
    "computing": (lenet, (8, 1, 28, 28)),
}


def _update(opt: DelayedSGD, inputs: Tensor) -> None:
    opt.zero_grad(set_to_none=False)  # no copies of gradients, as DDP with views of its buckets
    opt.module(inputs).square().mean().backward()
    opt.step()


def steps(
    group: Group, make: Callable[[], nn.Module], inputs: Tensor, methods: Iterable[str] = METHODS, *, fused: bool
) -> dict[str, tuple[Step, Step]]:
    """By method: one update, and what ends a block (drain), each on a network of its own."""
    made: dict[str, tuple[Step, Step]] = {}
    alone = Group(dist.HashStore(), 0, 1, group.timeout, group.backend)
    solver: dict[str, Any] = {"lr": 1e-3, "momentum": 0.9, "weight_decay": 5e-4, "fused": fused}
    cases = {"no comm": (alone, METHODS["SGD"])} | {name: (group, METHODS[name]) for name in methods}
    for name, (members, case) in cases.items():
        opt = DelayedSGD(make(), group=members, **solver, **case)
        made[name] = (partial(_update, opt, inputs), opt.finish)
    return made


def rival(make: Callable[[], nn.Module], inputs: Tensor) -> tuple[Step, Step]:
    """The same of PyTorch's DistributedDataParallel, with buckets of the same size."""
    parallel = nn.parallel.DistributedDataParallel(make(), bucket_cap_mb=BUCKET / 2**20, gradient_as_bucket_view=True)
    optimiser = torch.optim.SGD(parallel.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4)

    def update() -> None:
        optimiser.zero_grad(set_to_none=True)
        parallel(inputs).square().mean().backward()
        optimiser.step()

    return update, lambda: None


def over_speeds(group: Group, workload: str, speeds: Sequence[float], repeats: int) -> list[dict[str, Any]]:
    """Rows of :func:`timed` for every speed of the link."""
    make, shape = NETWORKS[workload]
    inputs = torch.rand(shape)
    methods = {**steps(group, make, inputs, fused=False), "PyTorch DDP": rival(make, inputs)}
    rows: list[dict[str, Any]] = []
    for speed in speeds:
        netlab.shape(netlab.INTERFACE, speed)
        rows += [{"speed": speed, **row} for row in timed(group, methods, repeats)]
    return rows


def on_hosts(group: Group, network: NetworkTimes, repeats: int) -> list[dict[str, Any]]:
    """Rows of :func:`timed` for a network that sleeps, by the paper's methods."""
    methods = steps(group, partial(SleepingNetwork, network), torch.rand(1), PAPERS, fused=True)
    return timed(group, methods, repeats, warm=3, updates=4)


def timed(
    group: Group, methods: Mapping[str, tuple[Step, Step]], repeats: int, warm: int = WARM, updates: int = UPDATES
) -> list[dict[str, Any]]:
    """Seconds per update of a block and its ``fastest``, by repetition and method, and of a sum of four bytes."""
    rows: list[dict[str, Any]] = []
    together, signal = Processes(group), torch.zeros(1, 1)
    for repeat in range(repeats + 1):
        for name, (update, finish) in methods.items():
            together.sum(signal)
            for _ in range(warm):  # no pause follows: it would let delayed sums land before the clock starts
                update()
            clock = [time.perf_counter()]
            for _ in range(updates):
                update()
                clock.append(time.perf_counter())
            finish()
            together.sum(signal)
            fastest = min(after - before for before, after in pairwise(clock))
            seconds = (clock[-1] - clock[0]) / updates
            rows.append({"repeat": repeat, "method": name, "seconds": seconds, "fastest": fastest})
        began = time.perf_counter()
        for _ in range(10):
            together.sum(signal)
        rows.append({"repeat": repeat, "method": "empty sum", "seconds": (time.perf_counter() - began) / 10})
    return [row for row in rows if row["repeat"]]  # the first repetition warms up


def stages(layers: Sequence[LayerTimes], most: int) -> tuple[LayerTimes, ...]:
    """Neighbouring layers joined into about ``most`` of equal seconds, their weights and their biases each into one.

    A start-up takes a thousand times as long here as on the paper's networks, so GoogLeNet's 128 sums would be all
    that is seen.
    """
    whole = math.fsum(n.forward + n.backward for n in layers)
    groups: dict[int, list[LayerTimes]] = {}
    passed = 0.0
    for layer in layers:
        groups.setdefault(int(most * passed / whole), []).append(layer)
        passed += layer.forward + layer.backward
    return tuple(
        LayerTimes(
            math.fsum(n.forward for n in group),
            math.fsum(n.backward for n in group),
            tuple(math.fsum(sizes) for sizes in zip_longest(*(n.tensors for n in group), fillvalue=0.0)),
        )
        for group in groups.values()
    )


def dilated(settings: Mapping[str, Any], devices: int) -> tuple[NetworkTimes, float]:
    """The layers of a network as they are slept on one of ``devices``, and the bits per second of a link.

    ``seconds`` of computing and ``numbers`` of parameters are what an update comes to here, whatever it is there.
    """
    there = Setting(settings["flops"], settings["memory"], 0.0, settings["beta"], 0.0)
    model = network(layer_costs(layers_of(settings["network"])), settings["batch"] / devices, there)
    slower = settings["seconds"] / (model.forward + model.backward)
    smaller = 4 * settings["numbers"] / model.size
    layers = tuple(
        LayerTimes(
            slower * n.forward, slower * n.backward, tuple(4.0 * max(1, round(smaller * s / 4)) for s in n.tensors)
        )
        for n in stages(model.layers, settings["stages"])
    )
    return NetworkTimes(layers), there.beta * 8 / netlab.PAYLOAD * smaller / slower


@in_lab
def hosts(spec: RunSpec, context: Context) -> Outcome:
    """Seconds per update by number of devices."""
    settings = thaw(spec.settings)
    rows = []
    for place, devices in enumerate(settings["devices"]):
        asleep, speed = dilated(settings, devices)
        with netlab.lab(devices, speed) as lab:
            first, *_ = spawn(on_hosts, devices, asleep, settings["repeats"], timeout=60, lab=lab)
        rows += [{"devices": devices, "speed": speed, **row} for row in first]
        context.report((place + 1) / len(settings["devices"]))
    return Outcome("finished", curves={"hosts": pd.DataFrame(rows)})


@in_lab
def link(spec: RunSpec, context: Context) -> Outcome:
    """Ratios to no communication over the speeds asked for."""
    speeds, repeats = spec.settings["speeds"], spec.settings["repeats"]
    tables = {}
    with netlab.lab() as lab:
        for place, workload in enumerate(NETWORKS):
            first, _ = spawn(over_speeds, 2, workload, speeds, repeats, timeout=60, lab=lab)
            tables[workload] = pd.DataFrame(first)
            context.report((place + 1) / len(NETWORKS))
    return Outcome("finished", curves=tables)


# ---------------------------------------------------------------- sums alone

REPEATS = 15
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
    first, _ = spawn(timed_sums, 2, timeout=60)
    results = {}
    for above, below in (("many small", "one large"), ("weights", "bias")):
        pairs = zip(first[above], first[below], strict=True)
        results[f"{above} over {below}"] = [one / other for one, other in pairs]
    return Outcome("finished", results)
