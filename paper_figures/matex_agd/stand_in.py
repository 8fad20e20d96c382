"""A network that sleeps instead of computing, so that overlap is not spoiled by two threads on one core."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor, nn


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


# AlexNet in small: convolutions with most of the time, inner products with most of the numbers
LAYERS = ((5_000, 3.0e-3), (15_000, 3.0e-3), (30_000, 2.0e-3), (30_000, 2.0e-3), (250_000, 1.0e-3), (120_000, 1.0e-3))


def sleeping() -> nn.Sequential:
    """450,600 numbers (1.8 MB), 12 ms forward and 24 ms backward."""
    return nn.Sequential(*(SleepingLayer(numbers, seconds) for numbers, seconds in LAYERS))
