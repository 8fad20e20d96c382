"""The experiment ``crossbow/sizes``: what Table 1's networks hold, and plans for output buffers (section 4.5).

The counting rule of dataflow operators gives all four numbers of Table 1's "# Ops": 24, 267, 121 and 384. The
optimiser is not counted:

- every layer is one forward operator and one gradient operator; views (flatten, identity) are none;
- the sum that ends a residual block is one forward operator, two gradient operators (one for each side) and
  one operator that merges the two gradients of the block's input;
- softmax, loss, gradient of the loss, and training accuracy are one each (softmax has no gradient itself);
- the crop and flip of CIFAR images is one operator, inside the dataflow. MNIST and ImageNet have none there:
  Crossbow prepares ImageNet's images on the host.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from paper_figures.crossbow.settings import NETWORKS
from suite.experiment import Context, Outcome, RunSpec
from suite.model_averaging.memory_plan import Operator, offline, training_operators
from suite.models.layers import Add
from suite.models.network import Network, calls
from suite.models.registry import construct

LAYER = 2  # forward, gradient
SUM = 4  # forward, left gradient, right gradient, merge
END = 4  # softmax, loss, gradient of the loss, accuracy
AUGMENTED = ("crossbow_resnet32", "crossbow_vgg16")  # whose dataflow starts with the crop and flip of its images


def sizes(spec: RunSpec, context: Context) -> Outcome:
    """Parameters and operators of Table 1's networks, counted; offline memory plans (section 4.5)."""
    results: dict[str, Any] = {}
    for name in NETWORKS:
        module: Any = construct(name)
        operators = dataflow(module, batch=spec.settings["batch"])
        results |= {
            f"{name}_parameters": sum(p.numel() for p in module.parameters()),
            f"{name}_operators": count(module, data_transform=name in AUGMENTED),
            f"{name}_bytes": sum(operator.size for operator in operators),
            f"{name}_planned": sum(offline(operators).sizes),
        }
    return Outcome("finished", results)


def dataflow(module: Network, batch: int) -> list[Operator]:
    """Forward and gradient operators of a classifier with the bytes of their outputs, traced on the meta device.

    A layer's inputs are recognised by the tensors it is called with; views (flatten) are no operators.
    """
    outputs: list[int] = []
    inputs: list[tuple[int, ...]] = []
    origin: dict[int, int] = {}
    for _, layer, given, output in calls(module, batch):
        sources = tuple(origin[id(tensor)] for tensor in given if id(tensor) in origin)
        if isinstance(layer, nn.Flatten | nn.Identity):
            if sources:
                origin[id(output)] = sources[0]
            continue
        origin[id(output)] = len(outputs)
        outputs.append(4 * output.numel())
        inputs.append(sources)
    return training_operators(outputs, inputs)


def count(module: nn.Module, *, data_transform: bool) -> int:
    """Number of dataflow operators of a classifier; ``data_transform`` adds the crop and flip."""
    leaves = (layer for layer in module.modules() if not list(layer.children()))
    operators = (layer for layer in leaves if not isinstance(layer, nn.Flatten | nn.Identity))
    return END + data_transform + sum(SUM if isinstance(layer, Add) else LAYER for layer in operators)
