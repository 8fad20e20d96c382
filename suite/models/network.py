"""What every network of the suite is: a module that knows its input and its parameters' rules, and how they begin.

An initialiser fills a CPU tensor in place from a given generator. It is told the fans of its layer's weight,
``fan_in = inputs / groups * kernel area`` and ``fan_out = outputs * kernel area``, because a bias has none of
its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Generator, Tensor, nn

Layers = list[tuple[str, nn.Module]]


class Network(nn.Module):
    """A classifier ``[B, *input_shape] -> logits [B, classes, *label_shape]``; by default one label an example."""

    def __init__(self, input_shape: tuple[int, ...], classes: int, label_shape: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.input_shape, self.classes, self.label_shape = input_shape, classes, label_shape


class Chain(Network, nn.Sequential):
    """Named layers applied one after another."""

    def __init__(self, layers: Iterable[tuple[str, nn.Module]], input_shape: tuple[int, ...], classes: int) -> None:
        super().__init__(input_shape, classes)
        for name, layer in layers:
            self.add_module(name, layer)


class Own(Network):
    """A module of any kind as a network; its initial values are those that its own constructor draws."""

    def __init__(self, make: Callable[[], nn.Module], input_shape: tuple[int, ...], classes: int) -> None:
        super().__init__(input_shape, classes)
        self._make = make
        self.module = make()

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)

    def draw(self, seed: int) -> None:
        """Take the values that the constructor draws under this seed, on the CPU."""
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            fresh = self._make()
            pairs = [*zip(self.module.parameters(), fresh.parameters(), strict=True)]
            for mine, drawn in [*pairs, *zip(self.module.buffers(), fresh.buffers(), strict=True)]:
                mine.copy_(drawn)


def own_network(make: Callable[..., nn.Module], input_shape: tuple[int, ...], classes: int) -> Callable[..., Network]:
    """What ``CLASSIFIERS`` holds, of a function that returns a module.

    Args:
        make: Returns ``[B, *input_shape] -> logits [B, classes]``; its keyword arguments are the network's options.
        input_shape: Of one example, [channels, height, width].
        classes: How many there are.

    Example:
        >>> build = own_network(lambda width=8: nn.Sequential(nn.Flatten(), nn.Linear(64, width)), (1, 8, 8), 8)
        >>> build(width=8).classes
        8
    """

    @functools.wraps(make)
    def build(**options: Any) -> Network:
        return Own(functools.partial(make, **options), input_shape, classes)

    return build


def parameter_specs(module: nn.Module) -> list[tuple[str, ParameterSpec]]:
    """``(name, spec)`` of every parameter, in the order of ``module.named_parameters()``."""
    return [
        (f"{prefix}.{name}" if prefix else name, specs_of(layer).get(name, ParameterSpec(Constant())))
        for prefix, layer in module.named_modules()
        for name, _ in layer.named_parameters(recurse=False)
    ]


def output_shape(layers: Iterable[tuple[str, nn.Module]], input_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape, without the batch, of what layers on the meta device make of an input.

    Raises:
        ValueError: the input is too small for the layers.
    """
    x = torch.empty(2, *input_shape, device="meta")
    for name, layer in layers:
        try:
            x = layer(x)
        except RuntimeError as error:
            raise ValueError(
                f"an input of {input_shape} leaves layer {name} a map of {tuple(x.shape[1:])}, "
                "which is too small for it: give a larger input_size"
            ) from error
    return tuple(x.shape[1:])


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
