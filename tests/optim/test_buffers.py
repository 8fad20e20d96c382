"""Buffers of learners that take turns in one module."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from suite.optim import SMA, DelayedSGD, Softsync
from suite.optim.module import Buffers, Membership


def normalised() -> nn.Module:
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    module[1].running_mean.copy_(torch.tensor([1.0, 2.0]))
    return module


def test_each_learner_keeps_its_own_and_their_sum_is_over_learners():
    module = normalised()
    buffers = Buffers(Membership(module, []), 3)
    buffers.load(1)
    module[1].running_mean.add_(10)
    module[1].num_batches_tracked.add_(5)
    buffers.keep(1)
    buffers.load(0)
    assert module[1].running_mean.tolist() == [1.0, 2.0]
    buffers.load(1)
    assert module[1].running_mean.tolist() == [11.0, 12.0]
    total = buffers.total()
    assert total.dtype == torch.float64
    assert total.tolist() == [13.0, 16.0, 3.0, 3.0]  # means, variances; not the count of batches
    buffers.keep(2)
    buffers.set_learners(4)
    assert buffers.sets()[3]["1.num_batches_tracked"].item() == 0, "whoever joins counts as the first"


def test_a_buffer_of_another_shape_than_was_kept_is_the_modules_for_every_learner():
    """Or one that was not there."""
    module = normalised()
    module.register_buffer("scales", torch.zeros(1))
    module.register_buffer("shifts", None)
    buffers = Buffers(Membership(module, []), 2)
    module.scales, module.shifts = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0])
    buffers.load(1)
    assert (module.scales.tolist(), module.shifts.tolist()) == ([1.0, 2.0, 3.0], [4.0])
    assert buffers.total().tolist() == [2.0, 4.0, 6.0, 8.0, 2.0, 4.0, 2.0, 2.0]


def test_two_optimisers_do_not_mix_the_buffers_of_their_learners():
    module = normalised()
    first, second = (SMA(module, part.parameters(), lr=0.1, learners=2) for part in module)
    step(second, module, 3)
    with pytest.raises(ValueError, match="another optimiser of several learners has put their buffers"):
        step(first, module, 3)
    first.take_up()
    for _ in range(2):
        step(first, module, 3)
    assert (first.t, second.t) == (1, 0)


class Positions(nn.Module):
    """Keeps positions for the longest batch seen, and scales that it has from its first batch on."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.out = nn.BatchNorm1d(2), nn.Linear(2, 3)
        self.register_buffer("cache", torch.zeros(1, 2), persistent=False)
        self.register_buffer("scales", None, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if len(self.cache) < len(x):
            self.cache = torch.arange(2.0 * len(x)).view(-1, 2) / 10
        if self.scales is None:
            self.scales = torch.full((2,), 2.0)
        return self.out(self.norm(x + self.cache[: len(x)]) * self.scales)


def step(opt: Any, module: nn.Module, size: int) -> None:
    opt.zero_grad()
    module(torch.linspace(0, 1, 2 * size).view(size, 2)).square().mean().backward()
    opt.step()


@pytest.mark.filterwarnings("ignore:model.state_dict")
@pytest.mark.parametrize("make", [partial(SMA, learners=2), partial(Softsync, learners=2), DelayedSGD])
def test_buffers_that_grow_are_the_modules_for_every_learner_and_in_the_tested_copy(make: Any):
    module = Positions()
    opt = make(module, lr=0.1)
    for size in (4, 8, 8, 6, 12, 12):
        step(opt, module, size)
        assert torch.equal(module.cache, torch.arange(2.0 * len(module.cache)).view(-1, 2) / 10)
        assert len(module.cache) >= size
        model = opt.average()
        assert torch.equal(model.cache, module.cache)
        assert torch.equal(model.scales, module.scales)
        assert list(model.state_dict()) == list(module.state_dict())
    sets = opt.buffers.sets()
    assert torch.allclose(model.norm.running_var, sum(held["norm.running_var"] for held in sets) / len(sets))


@pytest.mark.parametrize("make", [partial(SMA, learners=2), DelayedSGD])
def test_a_training_whose_caches_have_grown_is_resumed(make: Any, tmp_path: Path):
    module = Positions()
    opt = make(module, lr=0.1)
    for size in (4, 8):
        step(opt, module, size)
    opt.save(tmp_path)
    again = Positions()
    resumed = make(again, lr=0.1)
    resumed.resume(tmp_path)
    for size in (6, 12):
        step(opt, module, size)
        step(resumed, again, size)
    ends = [(*one.average().parameters(), *one.average().norm.buffers()) for one in (opt, resumed)]
    assert all(torch.equal(*pair) for pair in zip(*ends, strict=True))
