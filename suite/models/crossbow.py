"""The four networks of Crossbow's Table 1, as its authors built them.

Read in lsds/Crossbow d4441b35, src/test/java/uk/ac/imperial/lsds/crossbow: LeNet.java, ResNetv1ForCifar.java
(which the authors' resnet-32.sh runs), VGG.java and ResNetv1.java. The printed sizes (4.24, 1.79, 57.37 and
97.49 MB, in MiB of float32) and numbers of operators (24, 267, 121, 384) come out exactly.

Differs from the textbook networks:
- ResNet-32's average pool is 7 x 7 with stride 1 on an 8 x 8 map, so the classifier sees 256 features; its
  first stage has a projection although the widths agree (the builder never sets the number of inputs).
- LeNet asks for truncated Gaussians, but the flag is inverted on the way to the generator: they are plain.
- VGG-16 normalises after the ReLU.
- ResNet-50 strides in the first 1 x 1 convolution of a block (He et al.'s first version).
"""

from __future__ import annotations

from torch import nn

from suite.models.initialisers import Constant, Gaussian, Initialiser, Xavier
from suite.models.layers import BatchNorm, Conv2d, Linear, ResidualBlock, caffe_max_pool
from suite.models.network import Chain, Layers, output_shape, residual_stages


def crossbow_lenet(*, classes: int = 10) -> Chain:
    """LeNet, 1,111,946 parameters, input 1 x 28 x 28."""
    weight = Gaussian(0.1)
    layers: Layers = [
        ("conv1", Conv2d(1, 32, 5, weight=weight, bias=Constant(0.0))),
        ("relu1", nn.ReLU()),
        ("pool1", caffe_max_pool(2, 2)),
        ("conv2", Conv2d(32, 64, 5, weight=weight, bias=Constant(0.1))),
        ("relu2", nn.ReLU()),
        ("pool2", caffe_max_pool(2, 2)),
        ("flatten", nn.Flatten()),
        ("fc1", Linear(1024, 1024, weight=weight, bias=Constant(0.1))),
        ("relu3", nn.ReLU()),
        ("dropout", nn.Dropout(0.4)),
        ("fc2", Linear(1024, classes, weight=weight, bias=Constant(0.1))),
    ]
    return Chain(layers, (1, 28, 28), classes)


# Widths of VGG-16's convolutions; a dropout follows each but the last of a stage, 0.3 in the first stage.
VGG_STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


def crossbow_vgg16(*, classes: int = 100) -> Chain:
    """VGG-16 for CIFAR-100, 15,038,116 parameters."""
    weight = Xavier(average=True)
    layers: Layers = []
    inputs = 3
    for stage, widths in enumerate(VGG_STAGES, 1):
        for unit, width in enumerate(widths, 1):
            name = f"{stage}_{unit}"
            layers += [
                (f"conv{name}", Conv2d(inputs, width, 3, padding=1, weight=weight, bias=Constant())),
                (f"relu{name}", nn.ReLU()),
                (f"norm{name}", BatchNorm(width, eps=1e-3, keep=0.99)),
            ]
            if unit < len(widths):
                layers.append((f"dropout{name}", nn.Dropout(0.3 if stage == 1 else 0.4)))
            inputs = width
        layers.append((f"pool{stage}", nn.MaxPool2d(2, 2)))
    layers += [
        ("flatten", nn.Flatten()),
        ("dropout_fc1", nn.Dropout(0.5)),
        ("fc1", Linear(512, 512, weight=weight, bias=Constant())),
        ("relu_fc1", nn.ReLU()),
        ("norm_fc1", BatchNorm(512, eps=1e-3, keep=0.99)),
        ("dropout_fc2", nn.Dropout(0.5)),
        ("fc2", Linear(512, classes, weight=weight, bias=Constant())),
    ]
    return Chain(layers, (3, 32, 32), classes)


def _conv_norm(inputs: int, outputs: int, kernel: int, stride: int, weight: Initialiser) -> list[nn.Module]:
    padding = kernel // 2
    convolution = Conv2d(inputs, outputs, kernel, stride=stride, padding=padding, weight=weight, bias=None)
    return [convolution, BatchNorm(outputs)]


def crossbow_resnet32(*, classes: int = 10) -> Chain:
    """ResNet-32 for CIFAR-10, 469,114 parameters with the authors' quirks.

    Every stage begins with a projection, the first one too, and the pool leaves a 2 x 2 map.
    """
    weight = Xavier()
    convolution, norm = _conv_norm(3, 16, 3, 1, weight)

    def block(inputs: int, outputs: int, stride: int, first: bool) -> ResidualBlock:
        branch = [*_conv_norm(inputs, outputs, 3, stride, weight), nn.ReLU()]
        branch += _conv_norm(outputs, outputs, 3, 1, weight)
        shortcut = nn.Sequential(*_conv_norm(inputs, outputs, 1, stride, weight)) if first else nn.Identity()
        return ResidualBlock(nn.Sequential(*branch), shortcut)

    layers: Layers = [
        ("conv1", convolution),
        ("norm1", norm),
        ("relu1", nn.ReLU()),
        *residual_stages(16, ((16, 5), (32, 5), (64, 5)), block),
        ("pool", nn.AvgPool2d(7, stride=1)),
        ("flatten", nn.Flatten()),
        ("fc", Linear(256, classes, weight=weight, bias=Constant())),
    ]
    return Chain(layers, (3, 32, 32), classes)


def crossbow_resnet50(*, input_size: int = 224, classes: int = 1000) -> Chain:
    """ResNet-50 for ImageNet, 25,557,032 parameters; the last pool takes the whole map (7 x 7 at 224)."""
    weight = Xavier(average=True)
    convolution, norm = _conv_norm(3, 64, 7, 2, weight)

    def block(inputs: int, outputs: int, stride: int, first: bool) -> ResidualBlock:
        width = outputs // 4
        branch = [*_conv_norm(inputs, width, 1, stride, weight), nn.ReLU()]
        branch += [*_conv_norm(width, width, 3, 1, weight), nn.ReLU()]
        branch += _conv_norm(width, outputs, 1, 1, weight)
        shortcut = nn.Sequential(*_conv_norm(inputs, outputs, 1, stride, weight)) if first else nn.Identity()
        return ResidualBlock(nn.Sequential(*branch), shortcut)

    layers: Layers = [("conv1", convolution), ("norm1", norm), ("relu1", nn.ReLU()), ("pool1", caffe_max_pool(3, 2))]
    layers += residual_stages(64, ((256, 3), (512, 4), (1024, 6), (2048, 3)), block)
    shape = (3, input_size, input_size)
    layers += [
        ("pool", nn.AvgPool2d(output_shape(layers, shape)[1], stride=1)),
        ("flatten", nn.Flatten()),
        ("fc", Linear(2048, classes, weight=Gaussian(0.0221), bias=Constant())),
    ]
    return Chain(layers, shape, classes)
