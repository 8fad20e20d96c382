"""A network of no paper: a cheap one, for the embedded digits."""

from __future__ import annotations

from math import prod

from torch import nn

from suite.models.initialisers import Constant, Xavier
from suite.models.layers import Conv2d, Linear, caffe_max_pool
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
