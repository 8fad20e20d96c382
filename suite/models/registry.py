"""The one table from a network's name to the function that builds it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from suite.models.caffe_small import caffe_cifar_full, caffe_cifar_quick, caffe_lenet
from suite.models.network import Network

CLASSIFIERS: dict[str, Callable[..., Network]] = {
    "caffe_lenet": caffe_lenet,
    "caffe_cifar_quick": caffe_cifar_quick,
    "caffe_cifar_full": caffe_cifar_full,
}
TRANSLATORS: dict[str, Callable[..., nn.Module]] = {}


def construct(name: str, **options: Any) -> nn.Module:
    """The network on the meta device: shapes without memory, and no random numbers read.

    Raises:
        ValueError: unknown name, unknown or missing option, or an input too small for the network.
    """
    builders: dict[str, Callable[..., nn.Module]] = {**CLASSIFIERS, **TRANSLATORS}
    if name not in builders:
        raise ValueError(f"no network is called {name!r}; there are {', '.join(builders)}")
    signature = inspect.signature(builders[name])
    try:
        signature.bind(**options)
    except TypeError as error:
        allowed = ", ".join(signature.parameters)
        raise ValueError(f"{name} cannot be built: {error}; its options are {allowed}") from error
    with torch.device("meta"):
        return builders[name](**options)
