"""Schedules of ``TestLRScheduler`` by the names of its functions: one of each kind, alone, chained and in a row.

Rates and momenta must be those of torch.optim.SGD under the same schedule, to the last bit, through a state of the
scheduler as well. Functions about a scheduler alone, without an optimiser's step (wrong arguments), have no row, and
those that ask a schedule for its rates in another way (``get_last_lr``, closed forms) share its row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler as S
from torch.optim.swa_utils import SWALR

Make = Callable[..., Any]  # (module, params=None, **settings) -> optimiser
X = torch.tensor([[0.3, -0.4, 0.5], [0.1, 0.2, -0.3]])


def linear(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(dtype)


def fit(opt: Any, module: nn.Module, steps: int = 3, scheduler: Any = None) -> list[float]:
    """The losses of so many steps of least squares."""
    losses = []
    inputs = X.to(next(module.parameters()).dtype)
    for _ in range(steps):

        def closure() -> Tensor:
            opt.zero_grad()
            loss = (module(inputs) - 1).square().mean()
            loss.backward()
            return loss

        losses.append(float(opt.step(closure)))
        if scheduler is not None:
            scheduler.step(*([losses[-1]] if isinstance(scheduler, S.ReduceLROnPlateau) else []))
    return losses


def alike(make: Make, kind: Callable[[Any], Any], steps: int = 14) -> None:
    seen = []
    for build in (make, lambda module, groups, **settings: torch.optim.SGD(groups, **settings)):
        module = linear()
        groups = [{"params": module[0].parameters()}, {"params": module[2].parameters(), "lr": 0.02}]
        opt = build(module, groups, lr=0.002, momentum=0.5)
        scheduler = kind(opt)
        rates = []
        for step in range(steps):
            fit(opt, module, 1)
            given = [1.0] if isinstance(scheduler, S.ReduceLROnPlateau) else []
            scheduler.step(*given)
            rates.append([(float(group["lr"]), group["momentum"]) for group in opt.param_groups])
            if step == steps // 2:  # a state is gone on from
                held, scheduler = scheduler.state_dict(), kind(opt)
                scheduler.load_state_dict(held)
        seen.append((rates, scheduler.get_last_lr()))
    assert seen[0] == seen[1]


def twice(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda o: S.ChainedScheduler([first(o), second(o)])


def then(*kinds: Callable[[Any], Any], milestones: list[int]) -> Callable[[Any], Any]:
    return lambda o: S.SequentialLR(o, [kind(o) for kind in kinds], milestones=milestones)


step, multi = lambda o: S.StepLR(o, 3, 0.1), lambda o: S.MultiStepLR(o, [2, 5, 9], 0.1)
exp, const = lambda o: S.ExponentialLR(o, 0.9), lambda o: S.ConstantLR(o, 0.5, 5)
line = lambda o: S.LinearLR(o, 1 / 3, 0.7, 4)
cosine, warm = lambda o: S.CosineAnnealingLR(o, 10, 1e-5), lambda o: S.CosineAnnealingWarmRestarts(o, 4, 2, 1e-5)
plateau = lambda o: S.ReduceLROnPlateau(o, patience=2, threshold_mode="abs", threshold=0.01, cooldown=5)
SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "test_step_lr": step,
    "test_multi_step_lr": multi,
    "test_linearlr": line,
    "test_exp_lr": exp,
    "test_cos_anneal_lr": cosine,
    "test_reduce_lr_on_plateau1": plateau,
    "test_sequentiallr5": then(twice(line, const), const, milestones=[5]),
    "test_chained_lr4": twice(twice(exp, const), step),
    "test_cycle_lr_cycle_momentum": lambda o: S.CyclicLR(o, 1e-4, 2e-3, 4, base_momentum=0.5, max_momentum=0.8),
    "test_onecycle_lr_cosine_annealing": lambda o: S.OneCycleLR(o, 2e-3, total_steps=40),
    "test_cosine_warm_restarts_lr_step_no_epoch": warm,
    "test_lambda_lr": lambda o: S.LambdaLR(o, [lambda t: 0.9**t, lambda t: 0.8**t]),
    "test_multiplicative_lr": lambda o: S.MultiplicativeLR(o, [lambda t: 0.9, lambda t: 0.8]),
    "test_swalr_cosine_anneal_after_multiplicative": twice(
        lambda o: S.MultiplicativeLR(o, lambda t: 0.9), lambda o: SWALR(o, 1e-3, anneal_epochs=4)
    ),
}
