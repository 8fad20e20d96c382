"""States that are loaded twice, in the middle of a round, or of which a folder holds several; refusals of saving."""

from __future__ import annotations

import copy
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from door import RATE, closure, examples, network, rows, weights
from torch import Tensor, nn

from suite.optim import ISGD, SMA, DelayedSGD, LocalSGD, Softsync

MAKERS: dict[str, Any] = {
    "SMA": SMA,
    "SMA, 1 learner": partial(SMA, learners=1, alpha=0.2),
    "ISGD": partial(ISGD, batches=4, zeta=0.1, margin=0.0),
    "DelayedSGD": partial(DelayedSGD, delay=2),
    "hardsync": partial(Softsync, n=0, learners=3),
    "Softsync": partial(Softsync, n=1, learners=3),
    "asynchronous": partial(Softsync, n=3, learners=3),
}
FUSED = pytest.mark.parametrize("fused", [True, False], ids=["fused solver", "figures' solver"])


def made(name: str, **options: Any) -> tuple[Any, nn.Module]:
    module = network()
    return MAKERS[name](module, lr=RATE, momentum=0.9, **options), module


def steps(opt: Any, module: nn.Module, first: int, count: int) -> Tensor:
    inputs, targets = examples()
    for t in range(first, first + count):
        opt.step(closure(opt, module, inputs[rows(t)], targets[rows(t)]))
    return torch.cat([weights(module), weights(opt.average())])


@FUSED
@pytest.mark.parametrize("name", MAKERS)
def test_a_state_of_the_middle_of_a_round_is_gone_on_from_twice(name: str, fused: bool):
    opt, module = made(name, fused=fused)
    steps(opt, module, 0, 7)
    state = opt.state_dict()
    end = steps(opt, module, 7, 6)
    for _ in range(2):
        opt.load_state_dict(state)
        assert torch.equal(steps(opt, module, 7, 6), end)
    again, other = made(name, fused=fused)
    again.load_state_dict(state)
    assert torch.equal(steps(again, other, 7, 6), end)


@pytest.mark.parametrize("way", [partial(SMA, tau=0), LocalSGD], ids=["SMA", "LocalSGD"])
@pytest.mark.parametrize("how", [{}, {"fused": False}, {"base": torch.optim.SGD}], ids=str)
@pytest.mark.parametrize("rate", [0.5, torch.tensor(0.5)], ids=["number", "tensor"])
def test_the_learners_of_an_update_step_with_the_rate_that_it_began_with(way: Any, how: dict, rate: Any):
    """A schedule steps after every batch, and the update goes on from a state of its middle."""
    moved = []
    for interrupted in (False, True):
        module = nn.Linear(1, 1, bias=False)
        module.weight.data.fill_(4.0)
        opt = way(module, lr=copy.deepcopy(rate), learners=3, **how)
        schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda batch: 1 / 2**batch)
        for batch in range(6):
            if interrupted and batch % 3 == 2:
                opt.load_state_dict(opt.state_dict())
            opt.zero_grad()
            module(torch.ones(1, 1)).sum().backward()
            opt.step()
            schedule.step()
        moved.append(opt.core_state.replicas.view(-1).tolist())
    assert moved == [[3.5 - 0.5 / 8] * 3] * 2


def test_a_round_begun_with_the_figures_solver_goes_on_with_the_fused_one_and_not_back():
    """Its first learner's gradient waits for the last's with the one, and has been stepped with the other."""
    ends = []
    for begun_fused in (False, True):
        opt, module = made("SMA", fused=begun_fused)
        steps(opt, module, 0, 7)
        fused, other = made("SMA", fused=True)
        fused.load_state_dict(opt.state_dict())
        ends.append(steps(fused, other, 7, 6))
    torch.testing.assert_close(*ends)
    opt, module = made("SMA", fused=False)
    steps(fused, other, 13, 2)
    with pytest.raises(ValueError, match="between two learners"):
        opt.load_state_dict(fused.state_dict())


def test_a_lone_learner_has_the_buffers_that_its_module_has_now():
    """Also after a state was loaded: what the module's statistics are made of since then counts."""
    opt, module = made("DelayedSGD")
    steps(opt, module, 0, 1)
    opt.load_state_dict(opt.state_dict())
    module[1].running_mean.fill_(7)
    assert opt.average()[1].running_mean.tolist() == [7.0] * 6
    steps(opt, module, 1, 1)
    module[1].running_mean.fill_(8)
    assert opt.average()[1].running_mean.tolist() == [8.0] * 6


def test_of_several_states_the_newest_is_taken_up(tmp_path: Path):
    """A state that another user keeps beside, in a folder of another name, is none."""
    for t in (2, 9, 10):
        opt, module = made("SMA, 1 learner")
        steps(opt, module, 0, t)
        opt.save(tmp_path / str(t), at=(t, torch.tensor(t)))
        shutil.copytree(tmp_path / str(t) / f"update-{t}", tmp_path / "all" / f"update-{t}")
    shutil.copytree(tmp_path / "all" / "update-2", tmp_path / "all" / "update-best")
    opt, _ = made("SMA, 1 learner")
    assert opt.resume(tmp_path / "all") == {"at": (10, 10)}
    assert opt.t == 10
    with pytest.raises(TypeError, match="plain/at: a state holds tensors and plain values, not a type"):
        opt.save(tmp_path, at=int)


def test_the_middle_of_an_update_is_no_time_to_restart_or_to_add_parameters():
    opt, module = made("SMA")
    inputs, targets = examples()
    opt.step(closure(opt, module, inputs[rows(0)], targets[rows(0)]))
    for what, asked in (("restart", opt.restart), ("add_param_group", lambda: opt.add_param_group({"params": []}))):
        with pytest.raises(ValueError, match=f"{what} came when 1 of 2 learners had had their batch of update 0"):
            asked()
    steps(opt, module, 1, 1)
    opt.restart()
    assert torch.equal(module[0].weight, opt.average()[0].weight)
