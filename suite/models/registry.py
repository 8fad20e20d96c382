"""The one table from a network's name to the function that builds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from suite.models import caffe, crossbow, inverse_law
from suite.models.network import Network
from suite.models.transformer import CharacterTransformer
from suite.models.translation import ConditionalGRU
from suite.tables import Table, check_options

CLASSIFIERS: Table[Callable[..., Network]] = Table(
    "network",
    {
        "caffe_lenet": caffe.caffe_lenet,
        "caffe_cifar_quick": caffe.caffe_cifar_quick,
        "caffe_cifar_full": caffe.caffe_cifar_full,
        "caffe_alexnet": caffe.caffe_alexnet,
        "narrow_alexnet": caffe.narrow_alexnet,
        "caffe_googlenet": caffe.GoogLeNet,
        "lenet_small": inverse_law.lenet_small,
        "lenet_medium": inverse_law.lenet_medium,
        "lenet_large": inverse_law.lenet_large,
        "cifar_lenet": inverse_law.cifar_lenet,
        "vgg_medium": inverse_law.vgg_medium,
        "vgg_large": inverse_law.vgg_large,
        "resnet20": inverse_law.resnet20,
        "crossbow_lenet": crossbow.crossbow_lenet,
        "crossbow_resnet32": crossbow.crossbow_resnet32,
        "crossbow_vgg16": crossbow.crossbow_vgg16,
        "crossbow_resnet50": crossbow.crossbow_resnet50,
        "digits_lenet": caffe.digits_lenet,
        "character_transformer": CharacterTransformer,
    },
)
TRANSLATORS: dict[str, Callable[..., nn.Module]] = {"cgru": ConditionalGRU}


def construct(name: str, **options: Any) -> nn.Module:
    """The network on the meta device: shapes without memory, and no random numbers read.

    Raises:
        ValueError: unknown name, unknown or missing option, a size below 1, or an input too small.
    """
    builder = TRANSLATORS[name] if name in TRANSLATORS else CLASSIFIERS[name]
    check_options(f"network {name}", builder, 0, options)
    for option, value in options.items():
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise ValueError(f"network {name}: {option}={value} must be at least 1")
    with torch.device("meta"):
        return builder(**options)
