"""What worker processes run in the tests of averaging: importable by name, results as plain lists."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from reference_impls import crossbow, inverse_law
from suite.communication.group import Group
from suite.distributed.training import Training
from suite.training.optimizers import Caffe

EXAMPLES, UPDATES, BATCH = 96, 10, 4


class Method(NamedTuple):
    algorithm: Any
    config: Any
    learners: int = 4  # in all processes together
    devices: int = 0  # likewise; 0: flat


METHODS = {
    "sma": Method(crossbow, crossbow.Config()),
    "sma every 3": Method(crossbow, crossbow.Config(tau=3)),
    "ea-sgd": Method(crossbow, crossbow.elastic_averaging(0.15)),
    "s-sgd": Method(inverse_law, None),
    "two-level sma": Method(crossbow, crossbow.Config(), learners=8, devices=4),
    "two-level sma, constant alpha": Method(crossbow, crossbow.Config(0.2, 0.5, 2), learners=8, devices=4),
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
    algorithm, config, every, devices = METHODS[method]
    learners = every // group.size
    if devices:
        config = dataclasses.replace(config, devices=devices // group.size)
    module = network(seed=group.rank)  # only worker 0's weights count
    inputs, targets = examples()
    training = Training(module, group, algorithm, config, rate=0.1, descent=Caffe(0.9, 1e-3), learners=learners)
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
