"""Several learners on one device, in a number that changes: exact on a quadratic, and on streams."""

from __future__ import annotations

import pytest
import torch
from crossbow_worlds import assignment

from reference_impls.crossbow import SMA
from suite.battery.quadratic import lockstep
from suite.communication.collectives import Local
from suite.model_averaging.engine import Learners
from suite.model_averaging.task_schedule import Durations, schedule
from suite.training.gradients.backend import Functional
from suite.training.gradients.paths import backend
from suite.training.optimizers import CaffeSGD
from suite.training.problem import Classification, QuadraticProblem

D = 5
LR = torch.tensor(0.1, dtype=torch.float64)


def quadratic() -> QuadraticProblem:
    draw = torch.Generator().manual_seed(3)
    rows = torch.randn(200, D, generator=draw, dtype=torch.float64)
    return QuadraticProblem(rows, torch.linspace(0.3, 1.2, D, dtype=torch.float64))


def two_each(numbers):
    return (numbers[:, None] * 2 + torch.arange(2)) % 200


def make(k: int, path=Functional, **settings) -> Learners:
    algorithm = SMA(CaffeSGD(), Local(k), momentum=0.5, **settings)
    return Learners(algorithm, torch.ones(D, dtype=torch.float64), path(quadratic()), two_each)


@pytest.mark.parametrize("devices", [1, 2])
def test_learners_that_grow_read_the_next_batches_and_are_those_of_the_algorithm(devices):
    """Written out, its rules are in ``algorithms/test_crossbow.py``; to four learners after two iterations."""
    learners, made, batch = make(devices, alpha=0.25, devices=devices), quadratic(), 0
    expected = learners.state
    for iteration in range(6):
        if iteration == 2:
            learners.resize(4)
            expected = learners.algorithm.resize(expected)
        k = learners.k
        learners.step(LR)
        means = made.rows[2 * batch : 2 * (batch + k)].view(k, 2, D).mean(1)
        gradients = made.curvature * (expected.replicas - means)
        expected = learners.algorithm.update(expected, lockstep(k, iteration), torch.zeros(k), gradients, LR)
        batch += k
    assert (learners.k, learners.t, learners.taken, batch) == (4, 6, batch, 2 * devices + 4 * 4)
    torch.testing.assert_close(learners.state.replicas, expected.replicas, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(learners.centre, expected.centre, rtol=1e-12, atol=1e-12)
    if devices == 2:
        with pytest.raises(ValueError, match="equally many"):
            learners.resize(5)


def test_first_come_changes_replicas_but_not_the_batches_read():
    tasks = schedule(8, 1, 3, Durations(lambda batch: 1 + batch % 4, 0.1, 0.1))
    fair, served = make(3), make(3)
    read = []
    for numbers in assignment(tasks, 3):
        fair.step(LR)
        served.step(LR, numbers)
        read += numbers
    assert sorted(read) == list(range(24))
    assert read != sorted(read)
    assert (fair.state.replicas - served.state.replicas).abs().max() > 1e-3
    # the sum of replicas and average is the same at first order only: learners take other gradients later
    assert (fair.centre - served.centre).abs().max() < (fair.state.replicas - served.state.replicas).abs().max()


def test_one_iteration_with_permuted_batches_leaves_the_centre():
    ordered, permuted = make(4), make(4)
    ordered.step(LR)
    permuted.step(LR, (2, 0, 3, 1))
    ordered.state = ordered.state._replace(memory=permuted.state.memory)
    torch.testing.assert_close(ordered.centre, permuted.centre, rtol=0, atol=0)
    torch.testing.assert_close(ordered.state.replicas[[2, 0, 3, 1]], permuted.state.replicas, rtol=0, atol=0)


def test_a_new_learner_gets_the_mean_batch_norm_row():
    from suite.models import build, initialise
    from suite.training.flat import FlatModule

    module = build("crossbow_resnet32")
    initialise(module, 0)
    pixels = torch.randint(256, (8, 3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    problem = Classification(FlatModule(module), pixels, torch.arange(8), lambda x: x.float() / 128 - 1)
    learners = Learners(
        SMA(CaffeSGD(), Local(2)),
        problem.flat.point(),
        backend("looped", problem),
        lambda n: (n[:, None] * 2 + torch.arange(2)) % 8,
    )
    learners.step(torch.tensor(0.01))
    assert not torch.equal(learners.buffers[0], learners.buffers[1])
    mean = learners.buffers.mean(0)
    learners.resize(3)
    torch.testing.assert_close(learners.buffers[2], mean, rtol=0, atol=0)
