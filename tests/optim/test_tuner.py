"""SMA with ``learners="auto"``: the rule under a clock of the test's, learners that join and leave, resumption."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from door import examples, network, rows, weights
from torch import nn
from torch.nn import functional as F

from suite.communication.group import Group
from suite.optim import SMA, sma

SECONDS = {1: 1.0, 2: 1.5, 3: 2.2}  # of an update: 1, 1.33 and 1.36 batches a second


class Clock:
    """Stands where the updates so far have taken their seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.opt: Any = None

    def __call__(self) -> float:
        self.now += SECONDS[self.opt.learners]
        return self.now


def made(monkeypatch: pytest.MonkeyPatch, module: nn.Module, **options: Any) -> SMA:
    clock = Clock()
    clock.opt = opt = SMA(module, learners="auto", alpha=0.25, lr=0.125, **options)
    monkeypatch.setattr(sma, "clock", clock)
    return opt


def step(opt: SMA, module: nn.Module, t: int) -> None:
    inputs, targets = examples()
    opt.zero_grad()
    F.cross_entropy(module(inputs[rows(t)]), targets[rows(t)]).backward()
    opt.step()


def test_learners_join_at_the_centre_and_the_last_leaves_by_hand(monkeypatch: pytest.MonkeyPatch):
    """Five updates at each number count, after one that does not; 3 learners gain less than a tenth over 2."""
    module = nn.Linear(1, 1, bias=False)
    module.weight.data.fill_(1.0)
    opt = made(monkeypatch, module, centre_momentum=0.0)
    numbers: list[int] = []
    joined: list[bool] = []
    for _ in range(6 * (1 + 2 + 3) + 4):
        module(torch.ones(1, 1)).sum().backward()  # every gradient is 1
        before = opt.learners
        opt.step()
        opt.zero_grad()
        if opt.t == len(numbers):
            continue
        numbers.append(opt.learners)
        if opt.learners > before:
            joined.append(torch.equal(opt.core_state.replicas[-1], opt.core_state.centre))
            first = opt.core_state.replicas[0].item(), opt.core_state.centre.item()
    assert numbers == [1] * 5 + [2] * 6 + [3] * 6 + [2] * 3
    assert joined == [True, True]
    # With d = w - z of the first learner: d <- d / 2 - 1 / 8 for six updates alone. Of two the second has e, and
    # z gains (d + e) / 4: d <- d / 2 - 1 / 8 - e / 4 + ..., which the loop writes out.
    d = [0.0]
    z = 1.0
    for count in [1] * 6 + [2] * 6:
        d += [0.0] * (count - len(d))
        given = sum(d) / 4
        d, z = [own * 0.75 - 0.125 - given for own in d], z + given
    assert first == pytest.approx((z + d[0], z), abs=1e-6)


@pytest.mark.parametrize("late", [False, True], ids=["", "a group is added"])
@pytest.mark.parametrize("options", [{"momentum": 0.9}, {"fused": False}, {"base": torch.optim.AdamW}], ids=str)
def test_a_tuned_training_is_resumed_to_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: dict[str, Any], late: bool
):
    """Saved within a round of two learners: when the number is settled, and before, which costs one reading."""

    def begun() -> tuple[nn.Module, SMA]:
        module = network()
        opt = made(monkeypatch, module, params=module[4:].parameters() if late else None, **options)
        if late:
            opt.add_param_group({"params": module[0].parameters(), "lr": 0.02})
        return module, opt

    module, opt = begun()
    for t in range(44):
        step(opt, module, t)
        if t in (10, 38):
            opt.save(tmp_path / str(t))
            assert (opt.learners, len(opt._losses)) == (2, 1)
    for saved, last in ((38, 44), (10, 48)):
        other, again = begun()
        again.resume(tmp_path / str(saved))
        for t in range(saved + 1, last):
            step(again, other, t)
        assert again.state_dict()["state"]["tuner"] == opt.state_dict()["state"]["tuner"]
        assert saved == 10 or torch.equal(weights(other), weights(module))
        assert saved == 10 or torch.equal(weights(again.average()), weights(opt.average()))


def test_a_learner_that_joins_has_the_mean_of_the_buffers(monkeypatch: pytest.MonkeyPatch):
    module = network()
    opt = made(monkeypatch, module)
    t = 0
    while opt.learners < 3:
        step(opt, module, t)
        t += 1
    first, second, third = opt.buffers.sets()
    assert torch.equal(third["1.running_mean"], (first["1.running_mean"] + second["1.running_mean"]) / 2)
    assert not torch.equal(first["1.running_mean"], second["1.running_mean"])


def test_no_more_learners_than_the_maximum(monkeypatch: pytest.MonkeyPatch):
    module = network()
    opt = made(monkeypatch, module, max_learners=2)
    for t in range(40):
        step(opt, module, t)
    assert opt.learners == 2
    with pytest.raises(ValueError, match="learners = 'auto, at most 2'"):
        made(monkeypatch, network(), max_learners=3).load_state_dict(opt.state_dict())


def test_processes_tune_by_the_batches_that_all_of_them_compute(monkeypatch: pytest.MonkeyPatch):
    """One a second here, five in the others."""
    seconds = iter(range(3))
    monkeypatch.setattr(sma, "clock", lambda: next(seconds))
    monkeypatch.setattr(sma, "Processes", lambda group: SimpleNamespace(sum=lambda rows: rows.sum(0) + 5))
    tuner, group = sma.Tuner(8), Group(dist.HashStore(), 0, 2, 1.0, "gloo")
    for _ in range(3):
        tuner.after_update(group, torch.device("cpu"))
    assert tuner.rule.readings == (6.0, 6.0)
