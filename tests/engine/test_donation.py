"""A step that overwrites its state gives the bits of the pure one, and is given to nobody who reads it afterwards."""

from __future__ import annotations

import pytest
import torch

from reference_impls import crossbow, inverse_law, isgd, rudra
from suite.descent import Adam, Caffe, Torch
from suite.donation import BLOCK, Donated, donated

D = 2 * BLOCK + 77


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "multipliers"])
@pytest.mark.parametrize(("momentum", "decay"), [(0.9, 0.01), (0.0, 0.01), (0.9, 0.0)])
@pytest.mark.parametrize("rule", [Caffe, Torch])
@pytest.mark.parametrize("points", [True, False], ids=["both", "memory"])
def test_the_bits_are_those_of_the_pure_step(points, rule, momentum, decay, scaled, dtype):
    generator = torch.Generator().manual_seed(0)
    draw = lambda: torch.randn(D, generator=generator, dtype=dtype)
    scales = {"lr_scale": draw().abs(), "decay_scale": draw().abs()} if scaled else {}
    pure = rule(momentum, decay, **scales)
    x, memory = draw(), draw()
    ours = x.clone(), memory.clone()
    for rate in (0.1, 0.1, 0.003):
        grads, lr = draw(), torch.tensor(rate, dtype=dtype)
        kept, before = grads.clone(), (ours[0], x)
        x, memory = pure.step(memory, x, grads, lr)
        given, ours = ours, Donated(pure, points).step(ours[1], ours[0], grads, lr)
        assert torch.equal(grads, kept)
        assert points or torch.equal(*before)
        assert [new is old for new, old in zip(ours, given, strict=True)] == [points, True]
    assert torch.equal(ours[0], x)
    assert torch.equal(ours[1], memory)


def test_a_part_takes_its_own_multipliers():
    scale = torch.rand(D, generator=torch.Generator().manual_seed(0))
    pure, part = Caffe(0.9, 0.1, lr_scale=scale, decay_scale=scale.flip(0)), slice(1000, 1000 + BLOCK + 5)
    x, memory, grads = (torch.full((BLOCK + 5,), value) for value in (1.0, 2.0, 3.0))
    expected = pure.step(memory, x, grads, torch.tensor(0.1), part)
    found = Donated(pure).step(memory, x, grads, torch.tensor(0.1), part)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


def test_rows_take_the_pure_step():
    x, memory, grads = torch.ones(2, 5), torch.zeros(2, 5), torch.ones(2, 5)
    moved, _ = Donated(Torch(0.9)).step(memory, x, grads, torch.tensor(0.1))
    assert torch.equal(x, torch.ones(2, 5))
    assert not torch.equal(moved, x)


def test_what_an_algorithm_reads_again_is_not_handed_over():
    x = torch.zeros(3)
    assert donated(inverse_law, Caffe(0.9), x).points
    assert not donated(rudra, Caffe(0.9), x).points
    for algorithm in (crossbow, isgd):
        assert donated(algorithm, solver := Caffe(0.9), x) is solver
    assert donated(inverse_law, solver := Adam(), x) is solver
