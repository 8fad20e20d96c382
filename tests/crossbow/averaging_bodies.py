"""What worker processes run in the tests of averaging: importable by name, results as plain lists."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from reference_impls import crossbow, inverse_law
from suite.descent import Caffe
from suite.distributed import Training
from suite.processes import Group

EXAMPLES, UPDATES, BATCH, LEARNERS = 96, 10, 4, 4  # learners in all processes together
METHODS: dict[str, tuple[Any, Any]] = {
    "sma": (crossbow, crossbow.Config()),
    "sma every 3": (crossbow, crossbow.Config(tau=3)),
    "ea-sgd": (crossbow, crossbow.elastic_averaging(0.15)),
    "s-sgd": (inverse_law, None),
}


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.BatchNorm1d(7), nn.Linear(7, 3)).double()


def examples() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    return torch.randn(EXAMPLES, 5, generator=draw).double(), torch.randint(3, (EXAMPLES,), generator=draw)


def batch_of(t: int, learner: int) -> Tensor:
    return (torch.arange(BATCH) + (t * LEARNERS + learner) * BATCH) % EXAMPLES


def average(group: Group, method: str) -> list[float]:
    """Weights and batch-norm statistics of the evaluated model after training four learners spread over the group."""
    algorithm, config = METHODS[method]
    learners = LEARNERS // group.size
    module = network(seed=group.rank)  # only worker 0's weights count
    inputs, targets = examples()
    training = Training(module, group, algorithm, config, rate=0.1, descent=Caffe(0.9, 1e-3), learners=learners)
    for t in range(UPDATES):
        for j in range(learners):
            rows = batch_of(t, group.rank * learners + j)
            training.update(nn.functional.cross_entropy(module(inputs[rows]), targets[rows]))
    assert training.t == UPDATES
    with training.evaluated() as model:
        state = [value.reshape(-1).double() for value in model.state_dict().values() if value.is_floating_point()]
        return torch.cat(state).tolist()


def every_method(group: Group) -> dict[str, list[float]]:
    return {method: average(group, method) for method in METHODS}
