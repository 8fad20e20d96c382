"""Mixed precision's scaled losses: what the scaler does to the gradients is undone to the last bit, or skipped."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from door import RATE, examples, network, rows
from torch import Tensor, nn

from suite.optim import EASGD, SMA, DelayedSGD, Softsync, steps

MAKERS = {
    "SMA": SMA,
    "EASGD": partial(EASGD, alpha=0.2),
    "DelayedSGD": DelayedSGD,
    "DelayedSGD, delayed": partial(DelayedSGD, delay=2),
    "hardsync": partial(Softsync, n=0),
    "Softsync": partial(Softsync, n=2),
}


def trained(make: Any, scale: float | None, unscaled: bool = False, overflows: int | None = None) -> Tensor:
    """The weights after six batches; batch ``overflows`` has a gradient that is no number."""
    module = network()
    opt = make(module, lr=RATE, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale or 1.0, growth_interval=1000, enabled=scale is not None)
    inputs, targets = examples()
    for t in range(6):
        if overflows == t and scale is None:
            continue
        opt.zero_grad()
        scaler.scale(nn.functional.cross_entropy(module(inputs[rows(t)]), targets[rows(t)])).backward()
        if overflows == t:
            module[6].bias.grad[1] = torch.nan
        if unscaled:
            scaler.unscale_(opt)
        scaler.step(opt)
        scaler.update()
    return torch.cat([parameter.detach().reshape(-1) for parameter in opt.average().parameters()])


@pytest.mark.parametrize("unscaled", [False, True], ids=["", "unscaled before"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_loss_scaled_by_a_power_of_two_trains_to_the_same_bits(name: str, unscaled: bool):
    assert torch.equal(trained(MAKERS[name], 1024.0, unscaled), trained(MAKERS[name], None))


@pytest.mark.parametrize("name", MAKERS)
def test_a_batch_that_overflows_is_as_if_it_had_not_come(name: str):
    assert torch.equal(trained(MAKERS[name], 1024.0, overflows=2), trained(MAKERS[name], None, overflows=2))


def test_an_overflow_in_another_process_skips_the_step_here(monkeypatch: pytest.MonkeyPatch):
    module = network()
    opt = DelayedSGD(module, lr=RATE)
    monkeypatch.setattr(opt, "group", SimpleNamespace(size=2, rank=0, heartbeat=opt.group.heartbeat))
    begun = module[6].bias.detach().clone()
    for elsewhere, moves in ((1.0, False), (0.0, True)):
        monkeypatch.setattr(
            steps, "Processes", lambda group, more=elsewhere: SimpleNamespace(sum=lambda rows: rows.sum(0) + more)
        )
        for parameter in module.parameters():
            parameter.grad = torch.ones_like(parameter)
        opt.found_inf = torch.zeros(())
        opt.step()
        assert torch.equal(module[6].bias, begun) is not moves
