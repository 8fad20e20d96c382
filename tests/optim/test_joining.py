"""What processes bring with them: parts of the data, and models and settings that must agree."""

from __future__ import annotations

import itertools
import re
from functools import partial
from typing import Any

import optim_bodies as bodies
import pytest
import torch
import torch.distributed as dist
from door import network
from torch import nn

from suite.communication.group import Group, fitting_backend
from suite.communication.launch import spawn
from suite.optim import SMA, DelayedSGD, device, joining
from suite.optim.joining import part_of


def test_parts_are_disjoint_equal_and_refuse_too_few():
    group = lambda rank, size: Group(dist.HashStore(), rank, size, 1.0, "gloo")
    for examples, processes in ((12, 4), (50_003, 7), (3, 3)):
        parts = [part_of(examples, group(rank, processes)) for rank in range(processes)]
        assert {len(each) for each in parts} == {examples // processes}
        assert len(set(itertools.chain(*parts))) == processes * (examples // processes)
    with pytest.raises(ValueError, match="2 examples cannot be shared by 3 processes"):
        part_of(2, group(0, 3))


@pytest.mark.processes
def test_processes_that_differ_are_refused_in_every_process():
    messages = {
        "data": "worker 1 has number of examples = 101 where worker 0 has 100",
        "model": "worker 1 has model = .* start every worker with the same model",
        "delay": "worker 1 has delay = 1 where worker 0 has 0",
        "rate": "worker 1 has the groups' settings = .*0.2.* where worker 0 has .*0.1",
        "schedule": "worker 1 has the groups' settings = .*0.05.* where worker 0 has .*0.1",
        "learners": "worker 1 has learners = 3 where worker 0 has 2",
        "drift saved": r"process 1 has other weights than process 0 in save\(\)",
        "drift averaged": r"process 1 has other weights than process 0 in average\(\)",
    }
    for said in spawn(bodies.differ, 2, list(messages), timeout=20):
        assert all(re.search(*pair) for pair in zip(messages.values(), said, strict=True)), said


@pytest.mark.parametrize(
    ("exchange", "cards", "found"),
    [
        (None, 1, "cpu"),  # under torchrun: one card for two processes
        (None, 2, "cuda:1"),
        ("cpu:gloo,cuda:gloo", 2, "cpu"),  # the caller's init_process_group("gloo")
        ("cpu:gloo,cuda:nccl", 2, "cuda:1"),  # without a backend, which is reported as "undefined"
        ("cpu:gloo,cuda:nccl", 1, "cpu"),
        ("cuda:nccl", 2, "cuda:1"),
        ("cpu:gloo", 0, "cpu"),
    ],
)
def test_a_process_is_told_the_device_that_it_exchanges_on(monkeypatch, exchange: str | None, cards: int, found: str):
    for name, value in {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cards > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    monkeypatch.setattr(dist, "is_initialized", lambda: exchange is not None)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    monkeypatch.setattr(dist, "get_backend", lambda: "undefined")
    monkeypatch.setattr(dist, "get_backend_config", lambda: exchange)
    backend = fitting_backend() if exchange is None else joining._backend()
    assert str(device()) == str(Group(dist.HashStore(), 1, 2, 1.0, backend).device) == found


def test_one_process_computes_on_its_card_whatever_its_group_exchanges_over(monkeypatch):
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: 1)
    monkeypatch.setattr(dist, "get_backend_config", lambda: "cpu:gloo,cuda:gloo")
    assert str(device()) == "cuda:0"


def test_every_process_but_the_first_draws_random_numbers_of_its_own():
    drawn = []
    for rank in (0, 1, 2):
        with torch.random.fork_rng():
            torch.manual_seed(5)
            joining.own_random_numbers(Group(dist.HashStore(), rank, 3, 1.0, "gloo"))
            drawn.append(torch.rand(()).item())
    with torch.random.fork_rng():
        torch.manual_seed(5)
        assert torch.rand(()).item() == drawn[0]
    assert len(set(drawn)) == 3


@pytest.mark.processes
def test_a_default_process_group_without_a_backend_is_understood():
    assert spawn(bodies.joined_without_a_backend, 2, timeout=20) == [["gloo", 2.0]] * 2


def test_a_model_to_test_that_was_asked_for_in_inference_mode_can_be_trained_outside():
    module = network()
    opt = DelayedSGD(module, lr=0.1)
    with torch.inference_mode():
        model = opt.average()
    model(torch.zeros(1, 1, 6, 6)).sum().backward()
    assert model[0].weight.grad is not None


@pytest.mark.parametrize("make", [partial(SMA, learners=1, alpha=0.1), DelayedSGD])
def test_the_model_to_test_is_the_module_as_it_is_now(make: Any):
    """Its numbers, parts and last activation, not those of the first model that was asked for."""
    module = network()
    opt = make(module, lr=0.0)
    opt.average().train()
    module[5] = nn.Sequential(nn.Hardtanh(), nn.Dropout(0.9))
    module[1].eps = 0.5
    module.last = module(torch.ones(2, 1, 6, 6))
    module.last.sum().backward()
    opt.step()
    assert torch.equal(opt.average()(torch.ones(2, 1, 6, 6)), module.eval()(torch.ones(2, 1, 6, 6)))


def keeping() -> nn.Module:
    """A list of results, which cannot be copied."""
    module = nn.Linear(2, 2)
    module.kept = [module.weight + 1]
    return module


def spread() -> nn.Module:
    """With a part that averages gradients by itself."""
    part = object.__new__(nn.parallel.DistributedDataParallel)
    nn.Module.__init__(part)
    part.module = nn.Linear(2, 2)
    return nn.Sequential(nn.ReLU(), part)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DelayedSGD(nn.ReLU(), lr=0.1), "no parameters to train"),
        (lambda: DelayedSGD(keeping(), lr=0.1), "cannot be copied by copy.deepcopy, .* explicitly by the user"),
        (lambda: DelayedSGD(spread(), lr=0.1), r"module.1 is wrapped in Distributed.* \(module.1.module\)"),
        (lambda: SMA(network(), lr=0.1, learners=0), "learners=0 must be a whole number of at least 1"),
        (lambda: SMA(network(), lr=0.1, learners=3, devices=2), "3 learners cannot be spread evenly over devices=2"),
        (lambda: SMA(network(), lr=0.1, learners=1), "give learners=2 or more"),
        (lambda: SMA(network(), lr=0.1, learners="auto", alpha=0.1, max_learners=0), "max_learners=0"),
        (lambda: SMA(network(), lr=0.1, learners="auto", alpha=0.1, devices=2), "devices=2"),
        (lambda: SMA(network(), lr=0.1, learners="auto"), "alpha"),
        (lambda: DelayedSGD(network(), lr=0.1, order="first"), "order='first'"),
    ],
)
def test_what_cannot_be_trained_is_refused(make, message: str):
    with pytest.raises(ValueError, match=message):
        make()


def test_parameters_in_place_of_the_module_are_refused():
    with pytest.raises(TypeError, match=r"hand it the module, not its parameters \(generator\)"):
        SMA(network().parameters(), lr=0.1, learners=2)
    with pytest.raises(TypeError, match=r"groups of them, not 0\.1; a learning rate is"):
        SMA(network(), 0.1)
