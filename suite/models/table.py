"""Sizes of the networks, readable without torch: ``counts("caffe_lenet").parameters == 431_080``.

``sgd-suite refresh`` regenerates ``table.json`` from the networks themselves.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("table.json")

# Networks that appear with options other than their defaults.
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("caffe_googlenet", {"aux": False}),
    ("cifar_lenet", {"classes": 100}),
    ("vgg_medium", {"classes": 100}),
    ("vgg_large", {"classes": 100}),
    ("resnet20", {"classes": 100}),
    ("digits_lenet", {"input_size": 8, "kernel": 3}),
)


@dataclass(frozen=True)
class Counts:
    """Sizes of one network; per example means in one forward pass in training mode."""

    parameters: int
    buffers: int  # numbers of running statistics (batch norm)
    tensors: int  # parameter tensors, each sent by itself in layer-wise exchange
    flops_per_example: int  # 2 x multiply-adds of convolutions, inner products and attention
    activations_per_example: int  # numbers produced by all layers, views not counted
    input_shape: tuple[int, ...]
    classes: int
    has_dropout: bool


def counts(name: str, **options: Any) -> Counts:
    """Sizes of a network with these options; those that the table does not hold are counted, which imports torch.

    Raises:
        ValueError: there is no such network, or it cannot be built with these options.
    """
    return networks().get(_key(name, options)) or measure(name, **options)


@cache
def measure(name: str, **options: Any) -> Counts:
    """Count a classifier by one forward pass, on the meta device unless one of one's own reads values.

    Raises ValueError where it fails.
    """
    from torch import nn

    from suite.models.network import Network, Own, calls
    from suite.models.registry import construct
    from suite.models.transformer import CausalMixing

    module = construct(name, **options)
    assert isinstance(module, Network)
    batch = 2  # batch norm refuses a batch of one value per channel
    flops = activations = 0

    try:
        try:
            called = calls(module, batch)
        except (RuntimeError, TypeError):
            if not isinstance(module, Own):
                raise
            module.draw(0)  # on the CPU: a forward pass may read values
            called = calls(module, batch)
    except Exception as error:
        shape, reason = tuple(module.input_shape), str(error).partition("\n")[0]
        raise ValueError(f"the network {name} does not take examples of shape {shape}: {reason}") from error
    for _, layer, _, output in called:
        per_example = output.numel() // batch
        if isinstance(layer, nn.Conv2d | nn.Linear):
            flops += 2 * per_example * layer.weight[0].numel()
        if isinstance(layer, CausalMixing):  # two products over all places
            flops += 2 * 2 * per_example * output.shape[-2]
        if not isinstance(layer, nn.Flatten):
            activations += per_example
    return Counts(
        parameters=sum(p.numel() for p in module.parameters()),
        buffers=sum(b.numel() for b in module.buffers()),
        tensors=len(list(module.parameters())),
        flops_per_example=flops,
        activations_per_example=activations,
        input_shape=module.input_shape,
        classes=module.classes,
        has_dropout=any(isinstance(layer, nn.Dropout) for layer in module.modules()),
    )


def regenerate() -> str:
    """The text that ``table.json`` should hold."""
    from suite.models.registry import CLASSIFIERS

    rows: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in CLASSIFIERS] + list(VARIANTS)
    counted = {_key(name, options): asdict(measure(name, **options)) for name, options in rows}
    return json.dumps(counted, indent=1) + "\n"


def _key(name: str, options: dict[str, Any]) -> str:
    return " ".join([name, *(f"{option}={options[option]}" for option in sorted(options))])


@cache
def networks() -> dict[str, Counts]:
    """The sizes of each classifier by its name, and of those with options by these behind it."""
    rows = json.loads(PATH.read_text(encoding="utf-8"))
    return {key: Counts(**{**row, "input_shape": tuple(row["input_shape"])}) for key, row in rows.items()}
