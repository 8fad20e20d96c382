"""Checkpoints: what a state may hold comes back as it was, and one that fails leaves the one before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from suite.communication.collectives import CompletedSum
from suite.training.checkpoint import load, save


class Moments(NamedTuple):
    first: Tensor
    second: Tensor


class State(NamedTuple):
    x: Tensor
    moments: Moments
    sent: tuple[Any, ...]
    updates: int = 0
    rate: float | None = None
    warm: bool = False


def test_a_state_comes_back_with_its_types_and_more_sums_under_way_than_it_began_with(tmp_path: Path):
    x = torch.arange(4.0)
    sent = (slice(2, 4), CompletedSum(x[2:])), (slice(0, 2), CompletedSum(x[:2]))
    state = State(x, Moments(2 * x, 3 * x), sent, updates=7, rate=0.5, warm=True)
    save(tmp_path, state, {"t": 3}, {"buffers": 4 * x})
    found = load(tmp_path, State(torch.zeros(4), Moments(torch.zeros(4), torch.zeros(4)), ()), "cpu")
    assert found is not None
    again, values, tensors = found
    assert (type(again), type(again.moments)) == (State, Moments)
    assert (again.updates, again.rate, again.warm) == (7, 0.5, True)
    for ours, theirs in ((again.x, x), (again.moments.first, 2 * x), (again.moments.second, 3 * x)):
        assert torch.equal(ours, theirs)
    assert [part for part, _ in again.sent] == [slice(2, 4), slice(0, 2)]
    assert [total.wait().tolist() for _, total in again.sent] == [[2.0, 3.0], [0.0, 1.0]]
    assert (values, tensors["buffers"].tolist()) == ({"t": 3}, [0.0, 4.0, 8.0, 12.0])


def test_what_a_state_may_not_hold_is_named_with_its_place(tmp_path: Path):
    with pytest.raises(TypeError, match="state/1/0: a state holds tensors and plain values, not a object"):
        save(tmp_path, (torch.ones(1), (object(),)), {}, {})
    assert list(tmp_path.iterdir()) == []
