"""Caffe's networks for MNIST and CIFAR-10 (papers isgd and rudra), and for ImageNet (matex_agd too).

LeNet for MNIST and two CIFAR-10 networks were read in BVLC/caffe 9b891540: lenet_train_test.prototxt of
examples/mnist, cifar10_quick_train_test.prototxt and cifar10_full_train_test.prototxt of examples/cifar10.

The parameter counts agree with the sizes the papers print: 431,080 (isgd Table 1: 1.72 MB), 145,578 (isgd
Table 1: 0.58 MB) and 89,578 (rudra 4.2: about 90 K, 350 KiB).

AlexNet and GoogLeNet for ImageNet were read in BVLC/caffe 9b891540: models/bvlc_alexnet and models/bvlc_googlenet,
each train_val.prototxt. AlexNet has 60,965,224 parameters (isgd Table 1: 243.86 MB; matex_agd 6.2: about 60 M).
GoogLeNet has 13,378,280 with its auxiliary heads and 6,998,552 without; neither is the "about 4 M" of matex_agd
6.2.

Rudra 4.2 prints about 72 M parameters (289 MB) for its ImageNet network and no layers. No AlexNet with two
inner products of 4096 and a whole-numbered feature map has that many: 61.0 M (6 x 6) and 74.6 M (7 x 7) with
grouped convolutions, 62.4 M and 76.0 M without. The suite uses ``caffe_alexnet`` in its place and says so.
"""

from __future__ import annotations

import math
from math import prod

from torch import Tensor, nn

from suite.models.initialisers import Constant, Gaussian, Initialiser, ParameterSpec, Xavier
from suite.models.layers import (
    AcrossChannelLRN,
    Concatenate,
    Conv2d,
    Linear,
    WithinChannelLRN,
    caffe_average_pool,
    caffe_max_pool,
)
from suite.models.network import Chain, Layers, Network, output_shape

# Biases of all three networks learn twice as fast, and decay like weights unless a layer says otherwise.
BIAS = ParameterSpec(Constant(0.0), lr_multiplier=2.0)


def caffe_lenet(*, input_size: int = 28, classes: int = 10) -> Chain:
    """LeNet; no activation follows the convolutions. ``input_size=32`` gives 656,080 parameters."""
    return _lenet((20, 50, 500), 5, input_size, classes, BIAS)


def digits_lenet(*, input_size: int = 28, kernel: int = 5, classes: int = 10) -> Chain:
    """LeNet's shape at a fiftieth of its size, 8,474 parameters; ``input_size=8`` needs ``kernel=3``.

    A network of no paper: a cheap one, for the embedded digits. Its biases learn as fast as its weights.
    """
    return _lenet((6, 12, 32), kernel, input_size, classes, Constant())


def _lenet(
    widths: tuple[int, int, int], kernel: int, size: int, classes: int, bias: ParameterSpec | Initialiser
) -> Chain:
    shape, (first, second, hidden) = (1, size, size), widths
    layers: Layers = [
        ("conv1", Conv2d(1, first, kernel, weight=Xavier(), bias=bias)),
        ("pool1", caffe_max_pool(2, 2)),
        ("conv2", Conv2d(first, second, kernel, weight=Xavier(), bias=bias)),
        ("pool2", caffe_max_pool(2, 2)),
    ]
    features = prod(output_shape(layers, shape))
    layers += [
        ("flatten", nn.Flatten()),
        ("ip1", Linear(features, hidden, weight=Xavier(), bias=bias)),
        ("relu1", nn.ReLU()),
        ("ip2", Linear(hidden, classes, weight=Xavier(), bias=bias)),
    ]
    return Chain(layers, shape, classes)


def caffe_cifar_quick(*, classes: int = 10) -> Chain:
    """CIFAR-10 "quick": three 5 x 5 convolutions and two inner products; input minus the mean image."""
    layers: Layers = [
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
    layers: Layers = [
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


def bias(value: float) -> ParameterSpec:
    """A bias as both networks have it: twice the learning rate, no weight decay."""
    return ParameterSpec(Constant(value), lr_multiplier=2.0, decay_multiplier=0.0)


def caffe_alexnet(*, input_size: int = 227, classes: int = 1000, groups: int = 2, width: int = 1) -> Chain:
    """AlexNet: normalisation before pooling, some biases 0.1; ``groups=1`` gives 62,378,344 parameters.

    Every layer but the last has its outputs divided by ``width``. Weights that read fewer inputs than those of the
    whole network are drawn with Caffe's deviation times the root of how many times fewer, so that what they sum to
    spreads as there. With 67 pixels all windows fit, as with 227, and one place is left of the map.
    """
    if 96 % (groups * width):
        raise ValueError(f"width={width} must divide 96 channels in {groups} groups")
    c1, c2, c3, full = (outputs // width for outputs in (96, 256, 384, 4096))
    fewer = math.sqrt(width)
    weight, zero, raised = Gaussian(0.01 * fewer), bias(0.0), bias(0.1)

    def norm_and_pool(stage: int) -> Layers:
        return [(f"norm{stage}", AcrossChannelLRN(5, 1e-4, 0.75)), (f"pool{stage}", caffe_max_pool(3, 2))]

    shape = (3, input_size, input_size)
    layers: Layers = [
        ("conv1", Conv2d(3, c1, 11, stride=4, weight=Gaussian(0.01), bias=zero)),
        ("relu1", nn.ReLU()),
        *norm_and_pool(1),
        ("conv2", Conv2d(c1, c2, 5, padding=2, groups=groups, weight=weight, bias=raised)),
        ("relu2", nn.ReLU()),
        *norm_and_pool(2),
        ("conv3", Conv2d(c2, c3, 3, padding=1, weight=weight, bias=zero)),
        ("relu3", nn.ReLU()),
        ("conv4", Conv2d(c3, c3, 3, padding=1, groups=groups, weight=weight, bias=raised)),
        ("relu4", nn.ReLU()),
        ("conv5", Conv2d(c3, c2, 3, padding=1, groups=groups, weight=weight, bias=raised)),
        ("relu5", nn.ReLU()),
        ("pool5", caffe_max_pool(3, 2)),
    ]
    features = prod(output_shape(layers, shape))  # 6 x 6 places of 256 channels in the whole network
    first = Gaussian(0.005 * math.sqrt(9216 / features))
    layers += [
        ("flatten", nn.Flatten()),
        ("fc6", Linear(features, full, weight=first, bias=raised)),
        ("relu6", nn.ReLU()),
        ("drop6", nn.Dropout(0.5)),
        ("fc7", Linear(full, full, weight=Gaussian(0.005 * fewer), bias=raised)),
        ("relu7", nn.ReLU()),
        ("drop7", nn.Dropout(0.5)),
        ("fc8", Linear(full, classes, weight=weight, bias=zero)),
    ]
    return Chain(layers, shape, classes)


def narrow_alexnet(*, input_size: int = 67, classes: int = 100, width: int = 8) -> Chain:
    """AlexNet an eighth as wide, for CIFAR-100's pictures enlarged: 371,284 parameters."""
    return caffe_alexnet(input_size=input_size, classes=classes, width=width)


# inception: 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection (Szegedy et al., 2015, Table 1)
INCEPTION = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def _conv_relu(inputs: int, outputs: int, kernel: int, *, stride: int = 1, padding: int = 0) -> nn.Sequential:
    return nn.Sequential(
        Conv2d(inputs, outputs, kernel, stride=stride, padding=padding, weight=Xavier(), bias=bias(0.2)),
        nn.ReLU(),
    )


class Inception(nn.Module):
    """Four branches ``[B, inputs, H, W] -> [B, outputs, H, W]``, joined along the channels."""

    def __init__(self, inputs: int, widths: tuple[int, int, int, int, int, int]) -> None:
        super().__init__()
        one, three_reduce, three, five_reduce, five, projection = widths
        self.outputs = one + three + five + projection
        self.one = _conv_relu(inputs, one, 1)
        self.three = nn.Sequential(_conv_relu(inputs, three_reduce, 1), _conv_relu(three_reduce, three, 3, padding=1))
        self.five = nn.Sequential(_conv_relu(inputs, five_reduce, 1), _conv_relu(five_reduce, five, 5, padding=2))
        self.pool = nn.Sequential(caffe_max_pool(3, 1, padding=1), _conv_relu(inputs, projection, 1))
        self.join = Concatenate()

    def forward(self, x: Tensor) -> Tensor:
        return self.join(self.one(x), self.three(x), self.five(x), self.pool(x))


class GoogLeNet(Network):
    """Forward gives logits, and in training ``(main, auxiliary after 4a, auxiliary after 4d)``.

    The auxiliary losses count 0.3 each (``loss_weight`` in train_val.prototxt). In evaluation, and without ``aux``,
    it gives the main logits alone. Both of Caffe's phases have the auxiliary heads.
    """

    def __init__(self, *, input_size: int = 224, classes: int = 1000, aux: bool = True) -> None:
        super().__init__((3, input_size, input_size), classes)
        self.stem = nn.Sequential(
            _conv_relu(3, 64, 7, stride=2, padding=3),
            caffe_max_pool(3, 2),
            AcrossChannelLRN(5, 1e-4, 0.75),
            _conv_relu(64, 64, 1),
            _conv_relu(64, 192, 3, padding=1),
            AcrossChannelLRN(5, 1e-4, 0.75),
            caffe_max_pool(3, 2),
        )
        width = 192
        parts: dict[str, list[nn.Module]] = {"to_4a": [], "to_4d": [], "to_5b": []}
        for name, widths in INCEPTION.items():
            part = "to_4a" if name <= "4a" else "to_4d" if name <= "4d" else "to_5b"
            module = Inception(width, widths)
            width = module.outputs
            parts[part].append(module)
            if name in ("3b", "4e"):
                parts[part].append(caffe_max_pool(3, 2))
        self.to_4a, self.to_4d, self.to_5b = (nn.Sequential(*layers) for layers in parts.values())

        trunk: Layers = [("stem", self.stem), ("4a", self.to_4a)]
        at_4a = output_shape(trunk, self.input_shape)
        at_4d = output_shape([("4d", self.to_4d)], at_4a)
        at_5b = output_shape([("5b", self.to_5b)], at_4d)
        self.aux1 = _auxiliary_head(at_4a, classes) if aux else None
        self.aux2 = _auxiliary_head(at_4d, classes) if aux else None
        # 7 x 7 at 224 pixels: one window over the whole map, also at other sizes.
        self.head = nn.Sequential(
            caffe_average_pool(at_5b[1], 1),
            nn.Flatten(),
            nn.Dropout(0.4),
            Linear(at_5b[0], classes, weight=Xavier(), bias=bias(0.0)),
        )

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        at_4a = self.to_4a(self.stem(x))
        at_4d = self.to_4d(at_4a)
        main = self.head(self.to_5b(at_4d))
        if not self.training or self.aux1 is None or self.aux2 is None:
            return main
        return main, self.aux1(at_4a), self.aux2(at_4d)


def _auxiliary_head(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    pool = caffe_average_pool(5, 3)
    features = 128 * prod(output_shape([("auxiliary pool", pool)], shape)[1:])
    return nn.Sequential(
        pool,
        _conv_relu(shape[0], 128, 1),
        nn.Flatten(),
        Linear(features, 1024, weight=Xavier(), bias=bias(0.2)),
        nn.ReLU(),
        nn.Dropout(0.7),
        Linear(1024, classes, weight=Xavier(), bias=bias(0.0)),
    )
