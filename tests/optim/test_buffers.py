"""Buffers of learners that take turns in one module."""

from __future__ import annotations

import torch
from torch import nn

from suite.optim.module import Buffers


def normalised() -> nn.Module:
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    module[1].running_mean.copy_(torch.tensor([1.0, 2.0]))
    return module


def test_each_learner_keeps_its_own_and_their_sum_is_over_learners():
    module = normalised()
    buffers = Buffers(module, 3)
    buffers.load(1)
    module[1].running_mean.add_(10)
    buffers.keep(1)
    buffers.load(0)
    assert module[1].running_mean.tolist() == [1.0, 2.0]
    buffers.load(1)
    assert module[1].running_mean.tolist() == [11.0, 12.0]
    total = buffers.total()
    assert total.dtype == torch.float64
    assert total.tolist() == [13.0, 16.0, 3.0, 3.0]  # means, variances; not the count of batches


def test_a_lone_learner_has_those_of_the_module():
    buffers = Buffers(normalised(), 1)
    assert buffers.total().tolist() == [1.0, 2.0, 1.0, 1.0]
    assert Buffers(nn.Linear(2, 2), 1).total().tolist() == []
