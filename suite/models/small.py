"""Networks of no paper: cheap ones for the embedded data sets and for tests of the harness."""

from __future__ import annotations

from math import prod

from torch import nn

from suite.models.initialisers import Constant, He, Xavier
from suite.models.layers import BatchNorm, Conv2d, Linear, caffe_max_pool
from suite.models.network import Chain, Layers, output_shape


def digits_lenet(*, input_size: int = 28, kernel: int = 5, classes: int = 10) -> Chain:
    """LeNet's shape at a fiftieth of its size, 8,474 parameters; ``input_size=8`` needs ``kernel=3``."""
    shape = (1, input_size, input_size)
    layers: Layers = [
        ("conv1", Conv2d(1, 6, kernel, weight=Xavier(), bias=Constant())),
        ("pool1", caffe_max_pool(2, 2)),
        ("conv2", Conv2d(6, 12, kernel, weight=Xavier(), bias=Constant())),
        ("pool2", caffe_max_pool(2, 2)),
    ]
    features = prod(output_shape(layers, shape))
    layers += [
        ("flatten", nn.Flatten()),
        ("ip1", Linear(features, 32, weight=Xavier(), bias=Constant())),
        ("relu1", nn.ReLU()),
        ("ip2", Linear(32, classes, weight=Xavier(), bias=Constant())),
    ]
    return Chain(layers, shape, classes)


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
