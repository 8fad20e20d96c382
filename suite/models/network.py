"""What every network of the suite is: a module that knows its input and its parameters' rules."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from suite.models.initialisers import Constant, ParameterSpec, specs_of

Layers = list[tuple[str, nn.Module]]


class Network(nn.Module):
    """A classifier ``[B, *input_shape] -> logits [B, classes, *label_shape]``; by default one label an example."""

    def __init__(self, input_shape: tuple[int, ...], classes: int, label_shape: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.input_shape, self.classes, self.label_shape = input_shape, classes, label_shape


class Called(NamedTuple):
    """A layer as a forward pass calls it."""

    name: str
    layer: nn.Module
    inputs: tuple[Tensor, ...]
    output: Tensor


def calls(network: Network, batch: int) -> list[Called]:
    """The layers of a network in the order of a forward pass; on the meta device nothing is computed in it."""
    found: list[Called] = []
    with contextlib.ExitStack() as hooks, torch.no_grad():
        for name, layer in network.named_modules():
            if not list(layer.children()):
                hook = layer.register_forward_hook(lambda *seen, name=name: found.append(Called(name, *seen)))
                hooks.callback(hook.remove)
        network(torch.zeros(batch, *network.input_shape, device=next(network.parameters()).device))
    return found


class Chain(Network, nn.Sequential):
    """Named layers applied one after another."""

    def __init__(self, layers: Iterable[tuple[str, nn.Module]], input_shape: tuple[int, ...], classes: int) -> None:
        super().__init__(input_shape, classes)
        for name, layer in layers:
            self.add_module(name, layer)


def residual_stages(
    inputs: int, stages: Iterable[tuple[int, int]], block: Callable[[int, int, int, bool], nn.Module]
) -> Layers:
    """``block(inputs, outputs, stride, first)`` for (outputs, units) of each stage; later ones first halve maps."""
    layers: Layers = []
    for stage, (outputs, units) in enumerate(stages, 1):
        for unit in range(1, units + 1):
            first = unit == 1
            layers.append((f"block{stage}_{unit}", block(inputs, outputs, 2 if first and stage > 1 else 1, first)))
            inputs = outputs
    return layers


class Own(Network):
    """A module of any kind as a network; its initial values are those that its own constructor draws."""

    def __init__(self, make: Callable[[], nn.Module], input_shape: tuple[int, ...], classes: int) -> None:
        super().__init__(input_shape, classes)
        self._make = make
        try:
            self.module = make()
        except (RuntimeError, TypeError):  # a constructor that reads values finds none on the meta device
            with torch.device("cpu"), torch.random.fork_rng(devices=[]):
                self.module = make().to("meta")

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)

    def draw(self, seed: int) -> None:
        """Take the values that the constructor draws under this seed, on the CPU."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.module = self._make()


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
