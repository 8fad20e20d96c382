"""Virtual time of one training iteration: forward, backward, exchange and apply, and what of them overlaps.

The exchange follows the alpha-beta model: an all-reduce spends ``latency`` seconds on start-ups, which sums under
way at once spend together, and ``transfer`` seconds on the wire, which they spend one after another. Backward
frees gradients from the last layer to the first; MaTEx's three ways to use that (Daily et al., sections 4.1-4.3)
are :func:`synchronous`, :func:`layer_wise` and :func:`delayed`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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


def rates(network: NetworkTimes, cost: AllReduce, delays: Sequence[int] = (1, 2, 3)) -> dict[str, float]:
    """Iterations per second of every approach relative to no communication, by the paper's names."""
    seconds = {"no comm": network.compute, "SGD": synchronous(network, cost)}
    for order in ("all", "backward", "completed"):
        seconds[f"layer-wise, {order}"] = layer_wise(network, cost, order)
    for delay in delays:
        seconds[f"AGD {delay} comm"] = delayed(network, cost, delay)
    return {name: network.compute / value for name, value in seconds.items()}
