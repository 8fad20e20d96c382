"""Networks that are cheaper than any paper's, for tests of the harness."""

from __future__ import annotations

from math import prod

from torch import nn

from suite.models.initialisers import Constant, He, Xavier
from suite.models.layers import BatchNorm, Conv2d, Linear
from suite.models.network import Chain, Layers, output_shape


def tiny_bn(*, channels: int = 3, input_size: int = 8, classes: int = 10) -> Chain:
    """Two convolutions, each with batch norm, and one fully connected layer."""
    shape = (channels, input_size, input_size)
    layers: Layers = [
        ("conv1", Conv2d(channels, 8, 3, padding=1, weight=He(), bias=None)),
        ("norm1", BatchNorm(8)),
        ("relu1", nn.ReLU()),
        ("conv2", Conv2d(8, 16, 3, stride=2, padding=1, weight=He(), bias=None)),
        ("norm2", BatchNorm(16)),
        ("relu2", nn.ReLU()),
        ("flatten", nn.Flatten()),
    ]
    features = prod(output_shape(layers, shape))
    layers.append(("fc", Linear(features, classes, weight=Xavier(), bias=Constant())))
    return Chain(layers, shape, classes)


def linear(*, input_shape: tuple[int, ...] = (1, 28, 28), classes: int = 10) -> Chain:
    """Softmax regression, started at zero: convex, so every run has the same minimum."""
    shape = tuple(input_shape)
    layers: Layers = [
        ("flatten", nn.Flatten()),
        ("fc", Linear(prod(shape), classes, weight=Constant(), bias=Constant())),
    ]
    return Chain(layers, shape, classes)
