"""What worker processes run in the tests of averaging: importable by name, results as plain lists."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from reference_impls.crossbow import SMA, elastic_averaging
from reference_impls.inverse_law import SGD
from suite.communication.group import Group
from suite.distributed.training import Rule, Training
from suite.training.optimizers import CaffeSGD

EXAMPLES, UPDATES, BATCH = 96, 10, 4


class Method(NamedTuple):
    rule: Rule
    learners: int = 4  # in all processes together
    devices: int = 0  # likewise; 0: flat


METHODS = {
    "sma": Method(SMA),
    "sma every 3": Method(partial(SMA, tau=3)),
    "ea-sgd": Method(partial(elastic_averaging, alpha=0.15)),
    "s-sgd": Method(SGD),
    "two-level sma": Method(SMA, learners=8, devices=4),
    "two-level sma, constant alpha": Method(partial(SMA, alpha=0.2, momentum=0.5, tau=2), learners=8, devices=4),
}


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.BatchNorm1d(7), nn.Linear(7, 3)).double()


def examples() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    return torch.randn(EXAMPLES, 5, generator=draw).double(), torch.randint(3, (EXAMPLES,), generator=draw)


def batch_of(t: int, learner: int, learners: int) -> Tensor:
    """Examples of one of ``learners`` learners in update t."""
    return (torch.arange(BATCH) + (t * learners + learner) * BATCH) % EXAMPLES


def average(group: Group, method: str) -> list[float]:
    """Weights and batch-norm statistics of the evaluated model after training learners spread over the group."""
    rule, every, devices = METHODS[method]
    learners = every // group.size
    if devices:
        rule = partial(rule, devices=devices // group.size)
    module = network(seed=group.rank)  # only worker 0's weights count
    inputs, targets = examples()
    training = Training(module, group, rule, rate=0.1, optimizer=CaffeSGD(0.9, 1e-3), learners=learners)
    for t in range(UPDATES):
        for j in range(learners):
            rows = batch_of(t, group.rank * learners + j, every)
            training.update(nn.functional.cross_entropy(module(inputs[rows]), targets[rows]))
    assert training.t == UPDATES
    with training.evaluated() as model:
        state = [value.reshape(-1).double() for value in model.state_dict().values() if value.is_floating_point()]
        return torch.cat(state).tolist()


def every_method(group: Group) -> dict[str, list[float]]:
    return {method: average(group, method) for method in METHODS}
