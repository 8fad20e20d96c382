"""The two machines of MaTEx as ranges of constants, each with its source.

The paper prints neither speeds nor node counts, so every constant that is not a data sheet's is a range, and
what is derived from a machine is an interval over the corners of its ranges.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from suite.cost_models.overlap import AllReduce, LayerTimes, NetworkTimes

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
