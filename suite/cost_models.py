"""Seconds that a machine would need, without the machine: overlap of exchange and computation, printed hardware.

Numbers from here are simulated, whoever imports them.

The exchange follows the alpha-beta model: an all-reduce spends ``latency`` seconds on start-ups, which sums under
way at once spend together, and ``transfer`` seconds on the wire, which they spend one after another. Backward
frees gradients from the last layer to the first; MaTEx's three ways to use that (Daily et al., sections 4.1-4.3)
are :func:`synchronous`, :func:`layer_wise` and :func:`delayed`.

The two machines of MaTEx are ranges of constants, each with its source. The paper prints neither speeds nor node
counts, so every constant that is not a data sheet's is a range, and what is derived from a machine is an interval
over the corners of its ranges.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Order = Literal["all", "backward", "completed"]


@dataclass(frozen=True)
class AllReduce:
    """Cost of summing a buffer over ``workers`` connected by links of ``alpha`` seconds and ``beta`` bytes/s.

    ``ring``: 2 (k-1) steps of 1/k of the buffer. ``tree``: reduction and broadcast, 2 ceil(log2 k) steps of all
    of it. Every call costs ``call`` seconds besides, whatever its size (kernel launch, thread wake-up).
    """

    alpha: float
    beta: float
    workers: int
    kind: Literal["ring", "tree"] = "ring"
    call: float = 0.0

    @property
    def steps(self) -> int:
        """Messages one after another."""
        k = self.workers
        return 2 * (k - 1) if self.kind == "ring" else 2 * math.ceil(math.log2(k))

    @property
    def latency(self) -> float:
        """Seconds of one call that do not depend on its size."""
        return 0.0 if self.workers == 1 else self.call + self.steps * self.alpha

    def transfer(self, size: float) -> float:
        """Seconds on the wire for a buffer of ``size`` bytes."""
        if self.workers == 1:
            return 0.0
        each = size / self.workers if self.kind == "ring" else size
        return self.steps * each / self.beta

    def seconds(self, size: float) -> float:
        """One call with nothing else under way."""
        return self.latency + self.transfer(size)


@dataclass(frozen=True)
class LayerTimes:
    """Seconds of one layer on one device, and the bytes of each of its gradient tensors (none: no parameters)."""

    forward: float
    backward: float
    tensors: tuple[float, ...] = ()
    apply: float = 0.0
    copy: float = 0.0  # of its gradients, where they are averaged on a copy


@dataclass(frozen=True)
class NetworkTimes:
    """Layers from first to last."""

    layers: tuple[LayerTimes, ...]

    @cached_property
    def forward(self) -> float:
        return math.fsum(layer.forward for layer in self.layers)

    @cached_property
    def backward(self) -> float:
        return math.fsum(layer.backward for layer in self.layers)

    @cached_property
    def apply(self) -> float:
        return math.fsum(layer.apply for layer in self.layers)

    @property
    def compute(self) -> float:
        """Seconds of an iteration without communication."""
        return self.forward + self.backward + self.apply

    @cached_property
    def size(self) -> float:
        """Bytes of all gradients."""
        return math.fsum(size for layer in self.layers for size in layer.tensors)


def synchronous(network: NetworkTimes, cost: AllReduce) -> float:
    """Seconds of an iteration with one blocking sum of everything between backward and apply (4.1)."""
    return network.forward + network.backward + cost.seconds(network.size) + network.apply


def layer_wise(network: NetworkTimes, cost: AllReduce, order: Order = "backward") -> float:
    """Seconds of an iteration that sums each tensor, on a copy, as soon as backward has produced it (4.2).

    One background thread sends. ``all`` applies when everything is there, ``backward`` layer after
    layer from the last to the first, ``completed`` in the order of arrival.
    """
    now, sent = network.forward, 0.0
    arrived: list[tuple[float, float]] = []  # (when a layer's sums are all there, seconds to apply it)
    for layer in reversed(network.layers):
        now += layer.backward
        if layer.tensors:
            now += layer.copy
            for size in layer.tensors:
                sent = max(now, sent) + cost.seconds(size)
            arrived.append((sent, layer.apply))
    if not arrived:
        return now
    if order == "all":
        return max(now, max(when for when, _ in arrived)) + network.apply
    if order == "completed":
        arrived.sort()
    for when, seconds in arrived:
        now = max(now, when) + seconds
    return now


def delayed(network: NetworkTimes, cost: AllReduce, delay: int) -> float:
    """Seconds of an iteration once it runs steadily, with whole gradients applied ``delay`` iterations late (4.3).

    ``delay`` threads and buffers: start-ups pass side by side and transfers one after another, so that the slowest of
    computing, the link and a thread, which has ``delay`` iterations for a sum, sets the pace.
    """
    return max(network.compute, cost.transfer(network.size), cost.seconds(network.size) / delay)


def rates(network: NetworkTimes, cost: AllReduce) -> dict[str, float]:
    """Iterations per second of every approach relative to no communication, by the paper's names."""
    seconds = {"no comm": network.compute, "SGD": synchronous(network, cost)}
    for order in ("all", "backward", "completed"):
        seconds[f"layer-wise, {order}"] = layer_wise(network, cost, order)
    for delay in (1, 2, 3):
        seconds[f"AGD {delay} comm"] = delayed(network, cost, delay)
    return {name: network.compute / value for name, value in seconds.items()}


Range = tuple[float, float]


@dataclass(frozen=True)
class Setting:
    """One choice within a machine's ranges."""

    flops: float  # per second, achieved
    memory: float  # bytes per second
    alpha: float  # seconds per message
    beta: float  # bytes per second and direction
    call: float  # seconds per collective call


@dataclass(frozen=True)
class Machine:
    """A kind of device and its network. ``peak`` is single-precision FLOP/s of one device."""

    name: str
    devices: tuple[int, ...]
    peak: float
    efficiency: Range  # share of the peak that a convolutional network's training reaches
    memory: float
    alpha: Range
    beta: Range
    call: Range

    def centre(self) -> Setting:
        """Geometric middle of every range."""
        share, *rest = ((low * high) ** 0.5 for low, high in (self.efficiency, self.alpha, self.beta, self.call))
        return Setting(self.peak * share, self.memory, *rest)

    def corners(self) -> Iterator[Setting]:
        """All 16 combinations of the ends of the ranges."""
        for share, *rest in itertools.product(self.efficiency, self.alpha, self.beta, self.call):
            yield Setting(self.peak * share, self.memory, *rest)


# Devices, peak, memory: NVIDIA Tesla P100 and DGX-1 data sheets (8 P100 SXM2, 10.6 TFLOP/s, 732 GB/s).
# beta: NVLink 1.0, 20 GB/s per link and direction and four links a GPU (NVIDIA DGX-1 white paper), one to four rings
# at 90%: which rings early NCCL used is not printed. alpha, call: assumed, microseconds of a GPU-to-GPU copy and of a
# kernel launch. Efficiency: assumed, AlexNet and GoogLeNet with cuDNN 5.
DGX1 = Machine(
    name="DGX-1",
    devices=(1, 2, 4, 8),
    peak=10.6e12,
    efficiency=(0.3, 0.6),
    memory=732e9,
    alpha=(3e-6, 10e-6),
    beta=(18e9, 72e9),
    call=(5e-6, 30e-6),
)
# Peak: two 8-core Xeon E5-2670 at 2.6 GHz, 16 single-precision operations a cycle with AVX (Intel); the paper says
# multi-core Sandy Bridge only. Memory: four channels of DDR3-1600 a socket (Intel). beta: QDR (4 GB/s) or FDR
# (6.8 GB/s) InfiniBand less protocol, down to half of QDR because one thread also adds the numbers. alpha: MPI over
# InfiniBand, assumed from vendors' microbenchmarks; call: assumed, wake-up of a thread. Efficiency: assumed,
# IntelCaffe; devices: the categories that survive beside panel (c).
SANDY_BRIDGE = Machine(
    name="CPU cluster",
    devices=(1, 2, 4, 8),
    peak=2 * 8 * 2.6e9 * 16,
    efficiency=(0.3, 0.7),
    memory=2 * 51.2e9,
    alpha=(1e-6, 5e-6),
    beta=(1.5e9, 6e9),
    call=(1e-6, 20e-6),
)


@dataclass(frozen=True)
class LayerCost:
    """What a layer asks of a device, from its shapes: forward multiply-adds x 2 per example, and tensor sizes."""

    flops: float
    tensors: tuple[int, ...]  # numbers in each gradient tensor


def network(layers: tuple[LayerCost, ...], batch: float, setting: Setting) -> NetworkTimes:
    """Seconds per layer with ``batch`` examples on one device.

    Backward costs twice forward, as it forms the gradient of the weights and that of the input; the first layer
    does without the latter. Applying reads weight, gradient and velocity and writes two of them; a copy reads
    and writes.
    """
    made = []
    for place, layer in enumerate(layers):
        seconds = layer.flops * batch / setting.flops
        numbers = sum(layer.tensors)
        made.append(
            LayerTimes(
                forward=seconds,
                backward=seconds * (2 if place else 1),
                tensors=tuple(4.0 * n for n in layer.tensors),
                apply=5 * 4 * numbers / setting.memory,
                copy=2 * 4 * numbers / setting.memory,
            )
        )
    return NetworkTimes(tuple(made))


def exchange(setting: Setting, devices: int) -> AllReduce:
    """A ring of ``devices``."""
    return AllReduce(setting.alpha, setting.beta, devices, "ring", setting.call)
