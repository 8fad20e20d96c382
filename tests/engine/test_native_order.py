"""Where the native step takes layers in another order than the module has them."""

from __future__ import annotations

import pytest
import torch
from engine_cases import agree, points
from test_native import of
from torch import nn

from suite.models.initialisers import Constant, Xavier
from suite.models.layers import Conv2d, Linear
from suite.models.network import Chain
from suite.training.gradients.backend import AutogradGradients
from suite.training.gradients.native import Native, plan


def between(activation: nn.Module, pool: nn.Module) -> Chain:
    """A convolution, an activation and a pool over windows in which all may be negative."""
    layers = [
        ("conv", Conv2d(3, 4, 3, weight=Xavier(), bias=Constant(-0.3))),
        ("activation", activation),
        ("pool", pool),
        ("flatten", nn.Flatten()),
        ("ip", Linear(4 * 4 * 4, 5, weight=Xavier(), bias=Constant())),
    ]
    return Chain(layers, (3, 10, 10), 5)


@pytest.mark.parametrize(("activation", "written"), [(nn.Tanh(), "Tanh"), (nn.ReLU(), "Relu")])
def test_an_activation_is_taken_of_the_maximum_and_of_what_is_averaged(activation: nn.Module, written: str):
    """The same of fewer numbers, as it is monotone; an average of it is another thing."""
    assert f"MaxPool<8, 8, 4, 2, 2, 0, 4, 4>, {written}<64>, Flatten" in plan(between(activation, nn.MaxPool2d(2)))
    assert f"{written}<256>, AveragePool<8, 8, 4" in plan(between(activation, nn.AvgPool2d(2)))


@pytest.mark.compiler
@pytest.mark.usefixtures("hastily")
def test_a_maximum_before_its_activation_has_autograds_gradient():
    """A hyperbolic tangent below a rectifier."""
    layers = [
        *between(nn.Tanh(), nn.MaxPool2d(2)).named_children(),
        ("conv2", Conv2d(4, 6, 3, weight=Xavier(), bias=Constant(-0.3), padding=1)),
        ("relu2", nn.ReLU()),
        ("pool2", nn.MaxPool2d(2)),
        ("flatten2", nn.Flatten()),
        ("ip2", Linear(6 * 2 * 2, 5, weight=Xavier(), bias=Constant())),
    ]
    case = of(Chain([layer for layer in layers if layer[0] not in ("flatten", "ip")], (3, 10, 10), 5))
    x, rows, batch = points(case, 1), case.b0()[None], [case.fetch(torch.arange(11))]
    expected = tuple(part.clone() for part in AutogradGradients(case)(x, rows, batch))
    module = case.flat.module
    first = module.pool(module.conv(batch[0][0]))
    assert (first < 0).any()
    assert (module.pool2(module.conv2(first.tanh())) < 0).any()
    agree(expected, Native(case)(x, rows, batch), case.d)
