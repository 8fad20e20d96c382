"""A step that overwrites its state agrees with the pure one, and is given to nobody who reads it afterwards."""

from __future__ import annotations

import pytest
import torch

from reference_impls.crossbow import SMA
from reference_impls.inverse_law import SGD
from reference_impls.isgd import ISGD
from reference_impls.rudra import Softsync
from suite.communication.collectives import Alone
from suite.training.optimizers import MOST_PIECES, Adam, CaffeSGD, InPlace, TorchSGD, in_place

D = 100_003  # not a multiple of any vector length
PIECES = [70_000, 3, 30_000]  # of a network with three parameters
ULP = torch.finfo(torch.float32).eps
UPDATES = (0.1, 0.1, 0.003)
BOUND = 8 * ULP * len(UPDATES)  # four roundings of the pure step against as many of the kernel, a step


def drawn(seed: int, *shape: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator) for _ in range(2 + len(UPDATES))]


def multipliers(*values: float) -> torch.Tensor:
    return torch.cat([torch.full((size,), value) for size, value in zip(PIECES, values, strict=True)])


SCALES = {
    "plain": {},
    "rates": {"lr_scale": multipliers(1, 2, 1)},
    "rates and decays": {"lr_scale": multipliers(1, 2, 1), "decay_scale": multipliers(1, 0, 1)},
}


@pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize(("momentum", "decay"), [(0.9, 0.01), (0.0, 0.0)])
@pytest.mark.parametrize("rule", [CaffeSGD, TorchSGD])
@pytest.mark.parametrize("points", [True, False], ids=["both", "memory"])
def test_it_is_the_pure_step_to_a_few_roundings(points, rule, momentum, decay, scales):
    pure = rule(momentum, decay, **scales)
    x, memory, *gradients = drawn(0, D)
    if momentum == 0:
        memory = torch.zeros(D)
    given = x.clone(), memory.clone()
    start, ours = given[0].clone(), given
    for rate, grads in zip(UPDATES, gradients, strict=True):
        kept, lr, before = grads.clone(), torch.tensor(rate), ours[0].clone()
        x, memory = pure.step(memory, x, grads, lr)
        found = InPlace(pure, points).step(ours[1], ours[0], grads, lr)
        assert torch.equal(grads, kept)
        assert [new is old for new, old in zip(found, ours, strict=True)] == [points, True]
        assert points or torch.equal(ours[0], before)
        ours = found
    assert torch.equal(start, given[0]) != points
    scale = float(max(x.abs().max(), memory.abs().max()))
    assert float((ours[0] - x).abs().max()) <= BOUND * scale
    if momentum:
        assert float((ours[1] - memory).abs().max()) <= BOUND * scale
    else:
        assert not ours[1].any()


def test_it_is_torchs_own_fused_optimiser_to_the_bit():
    x, _, *gradients = drawn(1, D)
    weight = torch.nn.Parameter(x.clone())
    solver = torch.optim.SGD([weight], lr=0.1, momentum=0.9, weight_decay=0.01, fused=True)
    memory, ours = torch.zeros(D), InPlace(TorchSGD(0.9, 0.01))
    for grads in gradients:
        weight.grad = grads.clone()
        solver.step()
        x, memory = ours.step(memory, x, grads, torch.tensor(0.1, dtype=torch.float64))
    assert torch.equal(x, weight.detach())


def test_a_part_takes_its_own_multipliers():
    pure, part = CaffeSGD(0.9, 0.1, **SCALES["rates and decays"]), slice(69_990, 70_010)
    x, memory, grads = (torch.full((20,), value) for value in (1.0, 2.0, 3.0))
    expected = pure.step(memory, x, grads, torch.tensor(0.1), part)
    found = InPlace(pure).step(memory, x, grads, torch.tensor(0.1), part)
    for ours, theirs in zip(found, expected, strict=True):
        assert float((ours - theirs).abs().max()) <= BOUND * 3
    assert len(expected[0].unique()) == 2


def test_rows_are_stepped_together_where_they_have_no_multipliers():
    rows, memory, grads, *_ = drawn(2, 3, D)
    expected = TorchSGD(0.9, 0.1).step(memory, rows, grads, torch.tensor(0.1))
    new, kept = InPlace(TorchSGD(0.9, 0.1), overwrites=False).step(memory, rows, grads, torch.tensor(0.1))
    assert kept is memory
    assert float((new - expected[0]).abs().max()) <= BOUND * float(expected[0].abs().max())


def cases() -> dict[str, tuple]:
    x, memory, grads, *_ = drawn(3, 2, D)
    scale = torch.rand(D, generator=torch.Generator().manual_seed(3))
    halves = torch.ones(D).index_fill(0, torch.arange(D // 2), 2.0)
    columns = [tensor[:, :5] for tensor in (x, memory, grads)]
    return {
        "rows with multipliers": (TorchSGD(0.9, **SCALES["rates"]), x, memory, grads),
        "rows with two multipliers": (TorchSGD(0.9, lr_scale=halves), x, memory, grads),
        "float64": (TorchSGD(0.9), x.double(), memory.double(), grads.double()),
        "views with gaps": (TorchSGD(0.9), *columns),
        "a gradient with gaps": (TorchSGD(0.9), x[0], memory[0], torch.stack([grads[0]] * 2, 1)[:, 1]),
        "a gradient of float64": (TorchSGD(0.9), x[0], memory[0], grads[0].double()),
        f"more than {MOST_PIECES} multipliers": (TorchSGD(0.9, lr_scale=scale), x[0], memory[0], grads[0]),
    }


@pytest.mark.parametrize(("pure", "x", "memory", "grads"), cases().values(), ids=cases())
def test_anything_else_takes_the_pure_step_and_overwrites_nothing(pure, x, memory, grads):
    before = x.clone(), memory.clone()
    expected = pure.step(memory, x, grads, torch.tensor(0.1))
    found = InPlace(pure).step(memory, x, grads, torch.tensor(0.1))
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
    assert all(torch.equal(*pair) for pair in zip((x, memory), before, strict=True))


def test_what_an_algorithm_reads_again_is_not_handed_over():
    solver, alone, cpu = CaffeSGD(0.9), Alone(), torch.device("cpu")
    assert in_place(SGD(solver, alone), cpu).optimizer.overwrites
    for algorithm in (Softsync(solver, alone, 1), SMA(solver, alone)):
        assert not in_place(algorithm, cpu).optimizer.overwrites
    for algorithm in (ISGD(solver, alone, 2, zeta=0.1), SGD(Adam(), alone)):
        assert in_place(algorithm, cpu) is algorithm
    assert in_place(SGD(solver, alone), torch.device("cuda")).optimizer is solver
