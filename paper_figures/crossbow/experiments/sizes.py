"""The experiment ``crossbow/sizes``: what Table 1's networks hold, and plans for output buffers (section 4.5)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from paper_figures.crossbow.experiments.operators import crossbow_operators
from paper_figures.crossbow.settings import NETWORKS
from suite.experiment import Context
from suite.model_averaging.memory_plan import Operator, offline, online, training_operators
from suite.models.registry import construct
from suite.runs.store import Outcome
from suite.spec import RunSpec


def sizes(spec: RunSpec, context: Context) -> Outcome:
    """Parameters and operators of Table 1's networks, counted; offline and online memory plans (section 4.5)."""
    results: dict[str, Any] = {}
    for name in NETWORKS:
        module = construct(name)
        operators = dataflow(module, batch=spec.settings["batch"])
        plan, apart = offline(operators), sum(operator.size for operator in operators)
        results |= {
            f"{name}_parameters": sum(p.numel() for p in module.parameters()),
            f"{name}_operators": crossbow_operators(name),
            f"{name}_bytes": apart,
            f"{name}_planned": plan.bytes,
            f"{name}_shared": [online(operators, 4, lag) for lag in (0, len(operators) // 4, len(operators))],
        }
    return Outcome("finished", results)


def dataflow(module: nn.Module, batch: int) -> list[Operator]:
    """Forward and gradient operators of a classifier with the bytes of their outputs, traced on the meta device.

    A layer's inputs are recognised by the tensors it is called with; views (flatten) are no operators.
    """
    outputs: list[int] = []
    inputs: list[tuple[int, ...]] = []
    origin: dict[int, int] = {}
    alive: list[Tensor] = []  # keeps ids from being used again

    def visit(layer: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        sources = tuple(origin[id(tensor)] for tensor in given if id(tensor) in origin)
        alive.extend((*given, output))
        if isinstance(layer, nn.Flatten | nn.Identity):
            if sources:
                origin[id(output)] = sources[0]
            return
        origin[id(output)] = len(outputs)
        outputs.append(4 * output.numel())
        inputs.append(sources)

    handles = [layer.register_forward_hook(visit) for layer in module.modules() if not list(layer.children())]
    shape: Any = module.input_shape
    with torch.no_grad():
        module.to("meta")(torch.empty(batch, *shape, device="meta"))
    for handle in handles:
        handle.remove()
    return training_operators(outputs, inputs)
