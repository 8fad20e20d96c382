"""Trainings over processes, killed and taken up again: the same bits as without, from what every process has."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import optim_bodies as bodies
import pytest
import torch
import torch.distributed as dist
from door import RATE, network
from torch import nn

from suite.communication.group import Group
from suite.communication.launch import WorkersFailed, spawn
from suite.optim import DelayedSGD

SIZES = [
    pytest.param("toy", 24, id="small network"),
    pytest.param("resnet18", 200, id="ResNet-18 on CIFAR-10", marks=[pytest.mark.slow, pytest.mark.data]),
]


@pytest.mark.processes
@pytest.mark.parametrize(("size", "updates"), SIZES)
def test_a_killed_training_ends_in_the_same_bits_and_learns_as_the_reference(tmp_path: Path, size: str, updates: int):
    """It is killed between its third state and its end, and taken up from that state."""
    train = partial(spawn, bodies.averaged, 2, size, updates, 2, str(tmp_path))
    straight = train(timeout=300)
    with pytest.raises(WorkersFailed):
        train(updates * 7 // 8, timeout=20 if size == "toy" else 120)
    assert [path.name for path in tmp_path.iterdir()] == [f"update-{updates * 3 // 4}"]
    assert train(timeout=300) == straight
    # one process with four learners equals the reference implementation to the bit: see test_reference.py
    reference = bodies.averaged(Group(dist.HashStore(), 0, 1, 300.0, "gloo"), size, updates, 4)["losses"]
    rounds = torch.tensor(reference).view(updates, 4).mean(1)
    ours = torch.tensor([worker["losses"] for worker in straight]).view(2, updates, 2).mean((0, 2))
    tenth = max(4, updates // 10)
    assert ours[-tenth:].mean() < ours[:tenth].mean() - 0.05
    assert (ours[-tenth:].mean() - rounds[-tenth:].mean()).abs() < 0.1 * rounds[-tenth:].mean()


def test_parameters_that_are_not_trained_are_saved_and_a_state_without_them_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def made(seed: int, width: int = 11) -> tuple[DelayedSGD, nn.Module]:
        module = network(seed=seed)
        module[0].requires_grad_(False)
        module.append(nn.Linear(width, 2))  # in no group
        return DelayedSGD(module, module[4].parameters(), lr=RATE), module

    opt, module = made(0)
    opt.save(tmp_path / "whole")
    for seed in (0, 1):
        resumed, again = made(seed)
        resumed.resume(tmp_path / "whole")
        assert all(torch.equal(*pair) for pair in zip(module.parameters(), again.parameters(), strict=True))
    with pytest.raises(
        ValueError, match=r"parameter 7.weight of shape \(2, 11\), not \(2, 12\); make the same module"
    ):
        made(0, 12)[0].resume(tmp_path / "whole")
    monkeypatch.setattr(DelayedSGD, "_untrained", lambda self: {})
    opt.save(tmp_path / "old")
    monkeypatch.undo()
    resumed, again = made(1)
    resumed.resume(tmp_path / "old")
    assert torch.equal(again[4].weight, module[4].weight)
    assert torch.equal(again[0].weight, network(seed=1)[0].weight)


@pytest.mark.processes
def test_only_a_state_that_every_process_has_whole_is_taken_up(tmp_path: Path):
    for nothing, lacking, damaged, refusal, left in spawn(bodies.partly_lost, 2, str(tmp_path), timeout=30):
        assert nothing == {}
        assert lacking == damaged == {"at": 0}
        assert "written with delay = 1, not 2; make the optimiser with the same settings" in refusal
        assert not left
    alone = Group(dist.HashStore(), 0, 1, 5.0, "gloo")
    opt = DelayedSGD(network(), lr=RATE, delay=1, group=alone)
    with pytest.raises(ValueError, match="number of processes = 2, not 1"):
        opt.resume(tmp_path)
    for checkpoint in tmp_path.glob("update-*/worker-0/checkpoint"):
        checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="no state under .* is whole in every process; training begins anew"):
        assert opt.resume(tmp_path) == {}
