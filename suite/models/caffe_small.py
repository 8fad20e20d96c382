"""Caffe's LeNet for MNIST and its two CIFAR-10 networks (papers isgd and rudra).

Read in BVLC/caffe 9b891540: lenet_train_test.prototxt of examples/mnist, cifar10_quick_train_test.prototxt
and cifar10_full_train_test.prototxt of examples/cifar10.

The parameter counts agree with the sizes the papers print: 431,080 (isgd Table 1: 1.72 MB), 145,578 (isgd
Table 1: 0.58 MB) and 89,578 (rudra 4.2: about 90 K, 350 KiB).
"""

from __future__ import annotations

from math import prod

from torch import nn

from suite.models.initialisers import Constant, Gaussian, Initialiser, ParameterSpec, Xavier
from suite.models.layers import Conv2d, Linear, WithinChannelLRN, caffe_average_pool, caffe_max_pool
from suite.models.network import Chain, output_shape

# Biases of all three networks learn twice as fast, and decay like weights unless a layer says otherwise.
BIAS = ParameterSpec(Constant(0.0), lr_multiplier=2.0)


def caffe_lenet(*, input_size: int = 28, classes: int = 10) -> Chain:
    """LeNet; no activation follows the convolutions. ``input_size=32`` gives 656,080 parameters."""
    shape = (1, input_size, input_size)
    layers: list[tuple[str, nn.Module]] = [
        ("conv1", Conv2d(1, 20, 5, weight=Xavier(), bias=BIAS)),
        ("pool1", caffe_max_pool(2, 2)),
        ("conv2", Conv2d(20, 50, 5, weight=Xavier(), bias=BIAS)),
        ("pool2", caffe_max_pool(2, 2)),
    ]
    features = prod(output_shape(layers, shape))
    layers += [
        ("flatten", nn.Flatten()),
        ("ip1", Linear(features, 500, weight=Xavier(), bias=BIAS)),
        ("relu1", nn.ReLU()),
        ("ip2", Linear(500, classes, weight=Xavier(), bias=BIAS)),
    ]
    return Chain(layers, shape, classes)


def caffe_cifar_quick(*, classes: int = 10) -> Chain:
    """CIFAR-10 "quick": three 5 x 5 convolutions and two inner products; input minus the mean image."""
    layers: list[tuple[str, nn.Module]] = [
        ("conv1", _conv(3, 32, Gaussian(1e-4))),
        ("pool1", caffe_max_pool(3, 2)),
        ("relu1", nn.ReLU()),
        ("conv2", _conv(32, 32, Gaussian(0.01))),
        ("relu2", nn.ReLU()),
        ("pool2", caffe_average_pool(3, 2)),
        ("conv3", _conv(32, 64, Gaussian(0.01))),
        ("relu3", nn.ReLU()),
        ("pool3", caffe_average_pool(3, 2)),
        ("flatten", nn.Flatten()),
        ("ip1", Linear(1024, 64, weight=Gaussian(0.1), bias=BIAS)),
        ("ip2", Linear(64, classes, weight=Gaussian(0.1), bias=BIAS)),
    ]
    return Chain(layers, (3, 32, 32), classes)


def caffe_cifar_full(*, classes: int = 10) -> Chain:
    """CIFAR-10 "full": quick's convolutions with normalisation within channels and one inner product.

    conv3 states no multipliers, so its bias learns at rate 1; ip1 multiplies the weight decay by 250 on its
    weights and by 0 on its bias.
    """
    layers: list[tuple[str, nn.Module]] = [
        ("conv1", _conv(3, 32, Gaussian(1e-4))),
        ("pool1", caffe_max_pool(3, 2)),
        ("relu1", nn.ReLU()),
        ("norm1", WithinChannelLRN(3, 5e-5, 0.75)),
        ("conv2", _conv(32, 32, Gaussian(0.01))),
        ("relu2", nn.ReLU()),
        ("pool2", caffe_average_pool(3, 2)),
        ("norm2", WithinChannelLRN(3, 5e-5, 0.75)),
        ("conv3", _conv(32, 64, Gaussian(0.01), bias=ParameterSpec(Constant(0.0)))),
        ("relu3", nn.ReLU()),
        ("pool3", caffe_average_pool(3, 2)),
        ("flatten", nn.Flatten()),
        (
            "ip1",
            Linear(
                1024,
                classes,
                weight=ParameterSpec(Gaussian(0.01), decay_multiplier=250.0),
                bias=ParameterSpec(Constant(0.0), lr_multiplier=2.0, decay_multiplier=0.0),
            ),
        ),
    ]
    return Chain(layers, (3, 32, 32), classes)


def _conv(inputs: int, outputs: int, weight: Initialiser, bias: ParameterSpec = BIAS) -> Conv2d:
    return Conv2d(inputs, outputs, 5, padding=2, weight=weight, bias=bias)
