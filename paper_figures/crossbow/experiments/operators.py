"""Dataflow operators of a network, Crossbow's Table 1 "# Ops": 24, 267, 121 and 384.

The counting rule, which gives all four printed numbers; the optimiser is not counted:

- every layer is one forward operator and one gradient operator; views (flatten, identity) are none;
- the sum that ends a residual block is one forward operator, two gradient operators (one for each side) and
  one operator that merges the two gradients of the block's input;
- softmax, loss, gradient of the loss, and training accuracy are one each (softmax has no gradient itself);
- the crop and flip of CIFAR images is one operator, inside the dataflow. MNIST and ImageNet have none there:
  Crossbow prepares ImageNet's images on the host.
"""

from __future__ import annotations

from torch import nn

from suite.models.layers import Add
from suite.models.registry import construct

LAYER = 2  # forward, gradient
SUM = 4  # forward, left gradient, right gradient, merge
END = 4  # softmax, loss, gradient of the loss, accuracy

# Whether the network's dataflow starts with the crop and flip of its images.
CROSSBOW = {
    "crossbow_lenet": False,
    "crossbow_resnet32": True,
    "crossbow_vgg16": True,
    "crossbow_resnet50": False,
}


def count(module: nn.Module, *, data_transform: bool) -> int:
    """Number of dataflow operators of a classifier; ``data_transform`` adds the crop and flip."""
    leaves = [layer for layer in module.modules() if not list(layer.children())]
    total = END + data_transform
    for layer in leaves:
        if isinstance(layer, Add):
            total += SUM
        elif not isinstance(layer, nn.Flatten | nn.Identity):
            total += LAYER
    return total


def crossbow_operators(name: str) -> int:
    """Number of operators of one of Crossbow's four networks.

    Raises:
        ValueError: the network is not one of the four.
    """
    if name not in CROSSBOW:
        raise ValueError(f"{name!r} is not a network of Crossbow's Table 1; those are {', '.join(CROSSBOW)}")
    return count(construct(name), data_transform=CROSSBOW[name])
