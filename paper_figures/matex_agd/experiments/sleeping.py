"""Networks that compute by sleeping and exchange gradients that are really there."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from suite.communication.asleep import Device
from suite.cost_models.overlap import NetworkTimes


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
