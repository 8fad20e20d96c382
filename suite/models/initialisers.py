"""How a parameter's first value is drawn, and how Caffe scales its learning rate and weight decay.

An initialiser fills a CPU tensor in place from a given generator. It is told the fans of its layer's weight,
``fan_in = inputs / groups * kernel area`` and ``fan_out = outputs * kernel area``, because a bias has none of
its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Generator, Tensor


class Initialiser(Protocol):
    """A rule that fills ``values`` in place."""

    def fill(self, values: Tensor, fan_in: int, fan_out: int, generator: Generator) -> None: ...


@dataclass(frozen=True)
class Constant:
    """Every entry is ``value``."""

    value: float = 0.0

    def fill(self, values: Tensor, fan_in: int, fan_out: int, generator: Generator) -> None:
        values.fill_(self.value)


@dataclass(frozen=True)
class Gaussian:
    """Normal with mean 0 and standard deviation ``std``."""

    std: float

    def fill(self, values: Tensor, fan_in: int, fan_out: int, generator: Generator) -> None:
        values.normal_(0.0, self.std, generator=generator)


@dataclass(frozen=True)
class Xavier:
    """Uniform on +-sqrt(3 / n); variance 1 / n.

    Caffe's ``xavier`` has ``n = fan_in`` unless told otherwise, which is not Glorot's average of the fans;
    Crossbow's ``VarianceNormalisation.AVG`` is that average (``average=True``).
    """

    average: bool = False

    def fill(self, values: Tensor, fan_in: int, fan_out: int, generator: Generator) -> None:
        n = (fan_in + fan_out) / 2 if self.average else fan_in
        bound = math.sqrt(3 / n)
        values.uniform_(-bound, bound, generator=generator)


@dataclass(frozen=True)
class FanInUniform:
    """Uniform on +-1 / sqrt(fan_in), weights and biases alike: the default of Torch7 and of PyTorch."""

    def fill(self, values: Tensor, fan_in: int, fan_out: int, generator: Generator) -> None:
        bound = 1 / math.sqrt(fan_in)
        values.uniform_(-bound, bound, generator=generator)


@dataclass(frozen=True)
class He:
    """Normal with variance 2 / fan_out (He et al., 2015, backward form), as the Torch7 recipes use it."""

    def fill(self, values: Tensor, fan_in: int, fan_out: int, generator: Generator) -> None:
        values.normal_(0.0, math.sqrt(2 / fan_out), generator=generator)


@dataclass(frozen=True)
class Uniform:
    """Uniform on +-``bound``."""

    bound: float

    def fill(self, values: Tensor, fan_in: int, fan_out: int, generator: Generator) -> None:
        values.uniform_(-self.bound, self.bound, generator=generator)


@dataclass(frozen=True)
class ParameterSpec:
    """What a network says about one of its parameters besides its shape.

    The multipliers are Caffe's ``lr_mult`` and ``decay_mult``: factors on the solver's rate and weight decay.
    """

    initialiser: Initialiser
    lr_multiplier: float = 1.0
    decay_multiplier: float = 1.0


def fans(weight: Tensor) -> tuple[int, int]:
    """``(fan_in, fan_out)`` of a weight ``[outputs, inputs / groups, *kernel]``."""
    area = math.prod(weight.shape[2:])
    return weight.shape[1] * area, weight.shape[0] * area


def initialise(module: torch.nn.Module, seed: int) -> None:
    """Draw every parameter of ``module`` by its own rule; running statistics go to mean 0, variance 1.

    One generator seeded with ``seed`` is read in the order of ``module.named_parameters()``. Values are drawn
    on the CPU in float32 and then copied, so neither the device nor the dtype of the module changes them.

    Raises:
        ValueError: a parameter has no rule (the module was not built by :func:`suite.models.build`).
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for prefix, layer in module.named_modules():
            rules = specs_of(layer)
            for name, parameter in layer.named_parameters(recurse=False):
                if name not in rules:
                    raise ValueError(
                        f"parameter {prefix}.{name} has no initialiser: give its layer a `specs` entry, "
                        "or build the network with suite.models.build"
                    )
                values = torch.empty(parameter.shape, dtype=torch.float32)
                weight = getattr(layer, "weight", parameter)
                fan_in, fan_out = fans(weight) if weight.dim() > 1 else (1, 1)
                rules[name].initialiser.fill(values, fan_in, fan_out, generator)
                parameter.copy_(values)
    reset_buffers(module)


def reset_buffers(module: torch.nn.Module) -> None:
    """Put running means to 0 and running variances to 1."""
    for name, buffer in module.named_buffers():
        buffer.fill_(1.0 if name.endswith("running_var") else 0.0)


def specs_of(layer: torch.nn.Module) -> dict[str, ParameterSpec]:
    """The rules of the layer's own parameters by name; empty for a layer without any."""
    return vars(layer).get("specs", {})
