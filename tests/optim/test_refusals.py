"""What an optimiser is asked for in vain it refuses with a word on what to do, and goes on as if not asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from door import network
from torch import Tensor, nn

from suite.optim import ISGD, SMA, DelayedSGD, DiLoCo, LocalSGD, PostLocalSGD, Softsync

MAKERS = {
    "ISGD": lambda module, **more: ISGD(module, batches=4, zeta=0.01, **{"lr": 0.1, **more}),
    "SMA": lambda module, **more: SMA(module, **{"lr": 0.1, **more}),
    "DelayedSGD": lambda module, **more: DelayedSGD(module, **{"lr": 0.1, **more}),
    "Softsync": lambda module, **more: Softsync(module, **{"lr": 0.1, **more}),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("setting", ["lr", "momentum", "weight_decay"])
def test_a_negative_setting_and_a_missing_number_are_refused_and_none_is_a_setting(name: str, setting: str):
    for value in (-1e-9, float("nan"), "0.1"):
        with pytest.raises(ValueError, match=rf"{name}: {setting}={value!r} must be a number, at least 0"):
            MAKERS[name](network(), **{setting: value})
    MAKERS[name](network(), **{setting: 0.0})


@pytest.mark.parametrize(
    ("make", "setting", "least"),
    [
        *((make, "local_steps", 1) for make in (LocalSGD, DiLoCo, partial(PostLocalSGD, switch=3))),
        *((MAKERS[name], setting, 0) for name, setting in (("SMA", "tau"), ("Softsync", "n"), ("ISGD", "stop"))),
        *((DelayedSGD, setting, 0) for setting in ("delay", "bucket_bytes")),
        (PostLocalSGD, "switch", 0),
        (partial(ISGD, zeta=0.1), "batches", 2),
        (MAKERS["Softsync"], "updates", 1),
        *((make, "learners", 1) for make in (LocalSGD, DiLoCo, MAKERS["Softsync"])),
    ],
)
def test_numbers_of_updates_and_steps_are_whole(make: Callable[..., Any], setting: str, least: int):
    for value in (least - 1, least + 0.5):
        with pytest.raises(ValueError, match=rf"{setting}={value} must be a whole number of at least {least}"):
            make(network(), **{"lr": 0.1, setting: value})
    plain, counted = (make(network(), **{"lr": 0.1, setting: kind(least + 1)}) for kind in (int, np.int64))
    plain.load_state_dict(counted.state_dict())


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (lambda module: nn.Linear(3, 2).parameters(), r"shape \(2, 3\) is not the module's"),
        (lambda module: [module[0].bias.requires_grad_(False)], "none of these parameters requires a gradient"),
    ],
)
def test_a_group_that_cannot_be_added_changes_nothing(added: Callable[[Any], Any], message: str):
    module = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    opt = DelayedSGD(module, [module[0].weight], lr=0.1)
    with pytest.raises(ValueError, match=message):
        opt.add_param_group({"params": list(added(module))})
    assert [group["params"] for group in opt.param_groups] == [[module[0].weight]]
    before = [p.detach().clone() for p in module.parameters()]
    module(torch.ones(1, 3)).sum().backward()
    opt.step()
    assert [bool((a != b).any()) for a, b in zip(before, module.parameters(), strict=True)] == [True] + 3 * [False]


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (torch.ones(4, dtype=torch.complex64), "torch.complex64 on cpu"),
        (torch.ones(4, device="meta"), "torch.float32 on meta"),
    ],
)
def test_parameters_that_no_vector_can_hold_are_refused(odd: Tensor, told: str):
    module = nn.Linear(3, 2)
    module.odd = nn.Parameter(odd)
    with pytest.raises(
        ValueError, match=rf"shape \(4,\) is {told}; all must be floating-point numbers on one device"
    ):
        DelayedSGD(module, lr=0.1)


@pytest.mark.parametrize("name", MAKERS)
def test_a_module_without_numbers_is_refused_at_construction(name: str):
    with pytest.raises(ValueError, match=r"on meta, where parameters have no numbers; .* \.to_empty"):
        MAKERS[name](nn.Linear(3, 2, device="meta"))


def test_softsync_refuses_a_loader_of_too_little_and_new_parameters():
    module = nn.Linear(3, 2)
    opt = Softsync(module, [module.weight], lr=0.1, learners=2, updates=4)
    for loader, message in (([], "is empty"), (iter("abc"), "has ended after 3 batches, .* hand over what can be")):
        with pytest.raises(ValueError, match=f"the loader {message}"):
            list(opt.batches(loader))
    with pytest.raises(ValueError, match="weights of several ages"):
        opt.add_param_group({"params": [module.bias]})
