"""Averaging in one pass of machine code: torch's bits, and torch's operations wherever it is not to be had."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from door import DECAY, METHODS, MOMENTUM, RATE, Reference, network, train, weights
from torch import Tensor, nn

from suite.optim import SMA, averaging
from suite.training import machine_code

SOURCE, IN_PASSES = averaging.SOURCE, averaging.in_passes


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """One thread, and no library of another test's."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    averaging.one_pass.cache_clear()
    yield
    averaging.one_pass.cache_clear()
    torch.set_num_threads(threads)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every learner's step by torch's operations, those of the first comparison apart."""
    averaging.one_pass(torch.float32)
    seen: list[int] = []

    def counted(*arguments: object) -> None:
        seen.append(len(seen))
        IN_PASSES(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(averaging, "in_passes", counted)
    return seen


def trained(updates: int = 12, **options: object) -> Tensor:
    module = network()
    opt = SMA(module, lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, **{"learners": 2, **options})
    train(opt, module, updates)
    return weights(opt.average())


@pytest.mark.compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("learners", range(1, averaging.LEARNERS + 1))
def test_every_number_of_learners_has_the_bits_of_torchs_operations(learners: int, dtype: torch.dtype):
    found = averaging.one_pass(dtype)
    assert found is not None, "what was compiled does not round as torch does"
    assert averaging._agrees(found, dtype, learners)


@pytest.mark.compiler
def test_a_thread_averages_in_one_pass_and_many_share_torchs_operations(passes: list[int]):
    trained()
    assert passes == []
    torch.set_num_threads(averaging.THREADS + 1)
    trained()
    assert len(passes) == 24


@pytest.mark.compiler
def test_more_learners_than_one_pass_adds_up_are_torchs(passes: list[int]):
    trained(learners=averaging.LEARNERS + 1)
    assert len(passes) == 12 * (averaging.LEARNERS + 1)


@pytest.mark.compiler
def test_groups_with_rates_of_their_own_and_a_layout_of_their_own(monkeypatch: pytest.MonkeyPatch):
    """Channels-last weights, a group without momentum, a gradient that is missing."""

    def end() -> Tensor:
        module = network().to(memory_format=torch.channels_last)
        groups = [
            {"params": module[0].parameters(), "momentum": 0.0},
            {"params": module[1:].parameters(), "lr": 0.03},
        ]
        opt = SMA(module, groups, lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, learners=1, alpha=0.2)
        for number in range(6):
            draw = torch.Generator().manual_seed(number)
            for parameter in module.parameters():
                parameter.grad = torch.empty_like(parameter).copy_(torch.randn(parameter.shape, generator=draw))
            if number % 2:
                module[6].bias.grad = None
            opt.step()
        return weights(opt.average())

    ours = end()
    monkeypatch.setattr(averaging, "one_pass", lambda numbers: None)
    assert torch.equal(end(), ours)


def test_without_a_compiler_torch_averages_to_the_same_bits(passes: list[int], monkeypatch: pytest.MonkeyPatch):
    ours = trained()
    averaging.one_pass.cache_clear()
    passes.clear()
    machine_code.compiler.cache_clear()
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert torch.equal(trained(), ours)
    assert len(passes) == 24
    machine_code.compiler.cache_clear()


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("printed", "written"),
    [
        ("total + centre", "centre"),
        ("* by.alpha", "* by.alpha * 2"),
        ("ends ? std::fma(v[i], by.momentum, direction) :", ""),
    ],
)
def test_what_rounds_otherwise_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, written: str
):
    text = SOURCE.file.read_text()
    assert printed in text
    (tmp_path / "averaging.cpp").write_text(text.replace(printed, written))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(averaging, "SOURCE", replace(SOURCE, file=tmp_path / "averaging.cpp"))
    assert averaging.one_pass(torch.float32) is None
    assert torch.equal(trained(), Reference(METHODS["SMA"], torch.float32, 2, fused=True).train(12))


@pytest.mark.parametrize("name", ["SMA", "SMA, 1 learner", "SMA, 2 devices of 2"])
def test_a_restart_is_the_references(name: str):
    method, module = METHODS[name], network()
    opt = method.make(module)
    reference = Reference(method, torch.float32, method.learners, fused=True)
    for first in (0, 4, 8):
        train(opt, module, 4, first)
        for _ in range(4):
            reference.update()
        if first < 8:
            opt.restart()
            reference.state = reference.algorithm.restart(reference.state)
    assert torch.equal(opt.core_state.centre, reference.state.centre)
    assert torch.equal(opt.core_state.replicas, reference.state.replicas)
    assert module[0].weight.data_ptr() == opt.vector.x.data_ptr()


@pytest.mark.compiler
@pytest.mark.parametrize("settings", [{"learners": averaging.LEARNERS}, {"learners": 1, "alpha": 0.3}], ids=str)
def test_as_many_learners_and_threads_as_one_pass_serves(passes: list[int], settings: dict[str, Any]):
    torch.set_num_threads(averaging.THREADS)
    trained(4, **settings)
    assert passes == []


@pytest.mark.compiler
@pytest.mark.parametrize(("bias", "by_torch"), [(False, 2), (True, 0)], ids=["one weight", "two weights"])
def test_torch_adds_up_the_learners_of_a_lone_weight(passes: list[int], bias: bool, by_torch: int):
    """In an order of its own."""
    module = nn.Linear(1, 1, bias=bias)
    opt = SMA(module, lr=RATE, learners=2)
    for _ in range(2):
        module(torch.ones(2, 1)).sum().backward()
        opt.step()
    assert len(passes) == by_torch


@pytest.mark.compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_what_is_larger_than_the_cache_is_copied_past_it(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype):
    """Numbers that fill no 16 bytes at the end too, and a vector that begins within 16 bytes."""
    monkeypatch.setattr(averaging, "CACHE", 0)
    point, memory = torch.randn(1003, dtype=dtype), torch.zeros(1005, dtype=dtype)
    for start in (0, 1):
        averaging.copy(memory[start : start + 1003], point)
        assert torch.equal(memory[start : start + 1003], point)
    assert memory[-1] == 0
