"""Every optimiser in the corners of torch's interface: assigned gradients, skipped steps, copies, hooks, groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from suite.optim import EASGD, ISGD, SMA, DelayedSGD, Softsync

MAKERS: dict[str, Callable[..., Any]] = {
    "SMA": partial(SMA, learners=1, alpha=0.2),
    "EASGD": partial(EASGD, learners=1, alpha=0.2),
    "ISGD": partial(ISGD, batches=4, zeta=0.1),
    "DelayedSGD": DelayedSGD,
    "DelayedSGD, delay 1": partial(DelayedSGD, delay=1),
    "layer-wise": partial(DelayedSGD, layerwise=True),
    "layer-wise in buckets": partial(DelayedSGD, layerwise=True, bucket_bytes=64),
    "Softsync": partial(Softsync, learners=1),
}
ALL = pytest.mark.parametrize("name", MAKERS)
X = torch.tensor([[1.0, -2.0, 0.5, 3.0]])


def made(name: str, **options: Any) -> tuple[Any, nn.Module]:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    return MAKERS[name](module, lr=0.05, momentum=0.9, **options), module


def loss_of(module: nn.Module) -> Tensor:
    return module(X).square().sum()


def backward(opt: Any, module: nn.Module) -> Tensor:
    opt.zero_grad()
    loss = loss_of(module)
    loss.backward()
    return loss


def values(module: nn.Module) -> list[list[float]]:
    return [parameter.detach().flatten().tolist() for parameter in module.parameters()]


def by_autograd(module: nn.Module) -> None:
    parameters = list(module.parameters())
    for parameter, grad in zip(parameters, torch.autograd.grad(loss_of(module), parameters), strict=True):
        parameter.grad = grad


def partly(module: nn.Module) -> None:
    """The first layer's gradients by hand, the rest by backward."""
    first = list(module[0].parameters())
    grads = torch.autograd.grad(loss_of(module), first, retain_graph=True)
    module[2](module[1](module[0](X)).detach()).square().sum().backward()
    for parameter, grad in zip(first, grads, strict=True):
        parameter.grad = grad


@ALL
@pytest.mark.parametrize("assign", [by_autograd, partly])
def test_gradients_that_are_assigned_count_as_those_of_backward(name: str, assign: Callable[[nn.Module], None]):
    ends = []
    for assigned in (True, False):
        opt, module = made(name)
        for _ in range(3):
            opt.zero_grad()
            loss = loss_of(module)
            assign(module) if assigned else loss.backward()
            opt.step(lambda loss=loss: loss)
        ends.append(values(module))
    assert ends[0] == ends[1]
    assert ends[0] != values(made(name)[1])


@ALL
def test_a_sparse_gradient_that_is_assigned_is_refused(name: str):
    opt, module = made(name)
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter).to_sparse()
    with pytest.raises(ValueError, match="sparse"):
        opt.step(lambda: torch.ones(()))


@ALL
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("successor", ["itself", "torch"])
def test_another_optimiser_may_take_the_parameters(name: str, kept: bool, successor: str):
    opt, module = made(name)
    backward(opt, module)
    opt.step(lambda: torch.ones(()))
    first: Any = opt if kept else None
    if kept and successor == "torch" and "layer-wise" in name:
        opt.close()
    if successor == "itself":
        opt = MAKERS[name](module, lr=0.05)
    else:
        opt = torch.optim.SGD(module.parameters(), lr=0.05)
    begun = values(module)
    for _ in range(3):
        backward(opt, module)
        opt.step(lambda: torch.ones(()))
    assert values(module) != begun
    del first


@ALL
def test_a_state_that_does_not_fit_changes_nothing(name: str):
    opt, module = made(name)
    backward(opt, module)
    opt.step(lambda: torch.ones(()))
    begun = values(module)
    plain = torch.optim.SGD(module.parameters(), lr=0.1).state_dict()
    for state in (plain, {"state": {}, "param_groups": []}, {"state": {}}):
        with pytest.raises(ValueError, match=r"not the state of|different number of parameter groups"):
            opt.load_state_dict(state)
    assert (values(module), opt.t, opt.param_groups[0]["lr"]) == (begun, 1, 0.05)


@ALL
def test_a_parameter_that_moves_within_the_module_stays_trained(name: str):
    opt, module = made(name)
    module.other, begun = nn.Module(), values(module)
    module.other.weight = module[0].weight
    module[0] = nn.Identity()
    module.other.register_parameter("bias", opt.param_groups[0]["params"][1])
    module.append(nn.Identity())
    (module[2](X[:, :3]).sum() + module.other.weight.sum() + module.other.bias.sum()).backward()
    opt.step(lambda: torch.ones(()))
    assert "delay 1" in name or values(module) != begun
