"""What processes bring with them: parts of the data, and models and settings that must agree."""

from __future__ import annotations

import itertools

import optim_bodies as bodies
import pytest
import torch.distributed as dist
from door import network
from torch import nn

from suite.communication.group import Group
from suite.communication.launch import WorkersFailed, spawn
from suite.optim import SMA, DelayedSGD
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
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("data", "worker 1 has number of examples = 101 where worker 0 has 100"),
        ("model", "worker 1 has model = .* start every worker with the same model"),
        ("delay", "worker 1 has delay = 1 where worker 0 has 0"),
        ("rate", "worker 1 has the groups' settings = .*0.2.* where worker 0 has .*0.1"),
        ("learners", "worker 1 has learners = 3 where worker 0 has 2"),
    ],
)
def test_processes_that_differ_are_refused_in_every_process(what: str, message: str):
    with pytest.raises(WorkersFailed, match=message) as caught:
        spawn(bodies.differ, 2, what, timeout=20)
    assert [kind for kind, _ in caught.value.errors.values()] == ["ValueError"] * 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DelayedSGD(nn.ReLU(), lr=0.1), "no parameters to train"),
        (lambda: SMA(network(), lr=0.1, learners=0), "learners=0 must be at least 1"),
        (lambda: SMA(network(), lr=0.1, learners=3, devices=2), "3 learners cannot be spread evenly over devices=2"),
        (lambda: SMA(network(), lr=0.1, learners=1), "give learners=2 or more"),
    ],
)
def test_what_cannot_be_trained_is_refused(make, message: str):
    with pytest.raises(ValueError, match=message):
        make()


def test_parameters_in_place_of_the_module_are_refused():
    with pytest.raises(TypeError, match=r"hand it the module, not its parameters \(generator\)"):
        SMA(network().parameters(), lr=0.1, learners=2)
