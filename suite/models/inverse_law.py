"""The image networks of inverse_law's Table 1, found again from their parameter counts.

The paper prints counts, numbers of layers and names only. LeNet (MNIST) is the network of Torch7's demo
train-a-digit-classifier (torch/demos ef43a1c8) at three widths, and its medium row is that demo itself: exact
and certain. ResNet-20 is exact and certain in its count: He et al.'s CIFAR network with parameter-free
shortcuts, biases on the convolutions, and affine batch norm. The CIFAR LeNet is the demo's skeleton with
3 x 3 kernels, the only exact hit with round widths and the demo's pools. The VGG stacks are exact too, but a
second stack (three fully connected layers on a 3 x 3 map) has the same counts; five 2 x 2 pools speak for
this one.

Not recoverable from the paper, hence our choice: the places of VGG's pools, its activation (ReLU), and all
initialisers (Torch7's default for the LeNets and for fully connected layers, He's for ReLU convolutions).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from torch import nn

from suite.models.initialisers import Constant, FanInUniform, He
from suite.models.layers import BatchNorm, Conv2d, Linear, ResidualBlock, ZeroPaddedShortcut
from suite.models.network import Chain, Layers, output_shape, residual_stages

UNIFORM = FanInUniform()


def lenet_small(*, classes: int = 10) -> Chain:
    """MNIST small, 43,158 parameters; input 1 x 32 x 32 as in Torch7's MNIST files."""
    return _demo_lenet(1, (16, 32), 5, 100, classes)


def lenet_medium(*, classes: int = 10) -> Chain:
    """MNIST medium, 169,506 parameters; also the Even/Odd row, whose printed count implies ten outputs."""
    return _demo_lenet(1, (32, 64), 5, 200, classes)


def lenet_large(*, classes: int = 10) -> Chain:
    """MNIST large, 671,802 parameters."""
    return _demo_lenet(1, (64, 128), 5, 400, classes)


def cifar_lenet(*, classes: int = 10) -> Chain:
    """CIFAR small, 487,458 parameters, 505,548 with 100 classes (the paper repeats the count for 10)."""
    return _demo_lenet(3, (64, 128), 3, 200, classes)


def _demo_lenet(channels: int, widths: tuple[int, int], kernel: int, hidden: int, classes: int) -> Chain:
    shape = (channels, 32, 32)
    layers: Layers = [
        ("conv1", Conv2d(channels, widths[0], kernel, weight=UNIFORM, bias=UNIFORM)),
        ("tanh1", nn.Tanh()),
        ("pool1", nn.MaxPool2d(3, 3, 1)),
        ("conv2", Conv2d(widths[0], widths[1], kernel, weight=UNIFORM, bias=UNIFORM)),
        ("tanh2", nn.Tanh()),
        ("pool2", nn.MaxPool2d(2, 2)),
    ]
    features = prod(output_shape(layers, shape))
    layers += [
        ("flatten", nn.Flatten()),
        ("fc1", Linear(features, hidden, weight=UNIFORM, bias=UNIFORM)),
        ("tanh3", nn.Tanh()),
        ("fc2", Linear(hidden, classes, weight=UNIFORM, bias=UNIFORM)),
    ]
    return Chain(layers, shape, classes)


def vgg_medium(*, classes: int = 10) -> Chain:
    """CIFAR medium, 9 layers, 1,125,090 parameters; 1,143,180 with 100 classes."""
    return _vgg(((64, 64), (64, 64), (128,), (256,), (256,)), classes)


def vgg_large(*, classes: int = 10) -> Chain:
    """CIFAR large, 11 layers, 1,862,754 parameters; 1,880,844 with 100 classes."""
    return _vgg(((64, 64), (64, 64), (128, 128), (256, 256), (256,)), classes)


def _vgg(stages: Sequence[Sequence[int]], classes: int) -> Chain:
    """Stages of 3 x 3 convolutions, each ended by a 2 x 2 pool."""
    layers: Layers = []
    inputs = 3
    for stage, widths in enumerate(stages, 1):
        for unit, width in enumerate(widths, 1):
            name = f"{stage}_{unit}"
            layers.append((f"conv{name}", Conv2d(inputs, width, 3, padding=1, weight=He(), bias=Constant())))
            layers.append((f"relu{name}", nn.ReLU()))
            inputs = width
        layers.append((f"pool{stage}", nn.MaxPool2d(2, 2)))
    layers += [
        ("flatten", nn.Flatten()),
        ("fc1", Linear(inputs, 200, weight=UNIFORM, bias=UNIFORM)),
        ("relu_fc1", nn.ReLU()),
        ("fc2", Linear(200, classes, weight=UNIFORM, bias=UNIFORM)),
    ]
    return Chain(layers, (3, 32, 32), classes)


def _residual_block(inputs: int, outputs: int, stride: int, first: bool) -> ResidualBlock:
    branch = nn.Sequential(
        Conv2d(inputs, outputs, 3, stride=stride, padding=1, weight=He(), bias=Constant()),
        BatchNorm(outputs),
        nn.ReLU(),
        Conv2d(outputs, outputs, 3, padding=1, weight=He(), bias=Constant()),
        BatchNorm(outputs),
    )
    return ResidualBlock(branch, ZeroPaddedShortcut(inputs, outputs, stride) if stride > 1 else nn.Identity())


def resnet20(*, classes: int = 10) -> Chain:
    """ResNet-20 for CIFAR-10, 270,410 parameters (269,722 without the convolutions' biases).

    Initialised as in Torch7's recipe (facebookarchive/fb.resnet.torch 2fedffcb, models/resnet.lua), which
    kept those biases before cuDNN 4.
    """
    layers: Layers = [
        ("conv1", Conv2d(3, 16, 3, padding=1, weight=He(), bias=Constant())),
        ("norm1", BatchNorm(16)),
        ("relu1", nn.ReLU()),
        *residual_stages(16, ((16, 3), (32, 3), (64, 3)), _residual_block),
        ("pool", nn.AvgPool2d(8)),
        ("flatten", nn.Flatten()),
        ("fc", Linear(64, classes, weight=UNIFORM, bias=Constant())),
    ]
    return Chain(layers, (3, 32, 32), classes)
