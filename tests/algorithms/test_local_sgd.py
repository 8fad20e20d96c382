"""Local SGD, post-local SGD and DiLoCo: by hand, when they agree, and the settings at which they are another's."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from reference_impls.inverse_law import SGD
from reference_impls.local_sgd import DiLoCo, LocalSGD, PostLocalSGD
from suite.battery.quadratic import close, drive, lockstep, streams
from suite.communication.collectives import Alone, Local
from suite.training.optimizers import AdamW, CaffeSGD, TorchSGD

PLAIN, TWO, THREE = CaffeSGD(), Local(2), Local(3)


def advance(algorithm, state, t, gradients):
    """The state after turn t at rate 1, worker j with the gradient at place j."""
    sums = torch.tensor(gradients, dtype=torch.float64)[:, None]
    return algorithm.update(state, lockstep(len(gradients), t), torch.zeros(2), sums, torch.tensor(1.0).double())


def begin(algorithm):
    return algorithm.init(torch.zeros(1, dtype=torch.float64))


def test_two_workers_of_local_sgd_by_hand():
    """H = 2, gradients (1, -3), (1, 1), (2, 0), (0, 0): replicas 0, then (-1, 3), mean (-2 + 2) / 2, and so on."""
    algorithm = LocalSGD(PLAIN, TWO, h=2)
    state = begin(algorithm)
    seen = []
    for t, gradients in enumerate(((1.0, -3.0), (1.0, 1.0), (2.0, 0.0), (0.0, 0.0))):
        state = advance(algorithm, state, t, gradients)
        seen.append((state.replicas.ravel().tolist(), algorithm.model(state).item()))
    assert seen == [([-1.0, 3.0], 1.0), ([0.0, 0.0], 0.0), ([-2.0, 0.0], -1.0), ([-1.0, -1.0], -1.0)]


def test_two_rounds_of_diloco_by_hand():
    """H = 1, alpha = 1/2, mu = 1/2, mean gradients 2 and -1.

    Delta = 2, v = 2, theta = -(2 + 1) / 2 = -3/2. Then Delta = -1, v = 1 - 1 = 0, theta = -3/2 + 1/2 = -1.
    """
    algorithm = DiLoCo(PLAIN, TWO, h=1, alpha=0.5, momentum=0.5)
    state = advance(algorithm, begin(algorithm), 0, (1.0, 3.0))
    assert (state.common.item(), state.velocity.item(), state.replicas.ravel().tolist()) == (-1.5, 2.0, [-1.5, -1.5])
    state = advance(algorithm, state, 1, (-2.0, 0.0))
    assert (state.common.item(), state.velocity.item(), state.replicas.ravel().tolist()) == (-1.0, 0.0, [-1.0, -1.0])


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        (LocalSGD(PLAIN, TWO, h=3), [2, 5, 8, 11]),
        (PostLocalSGD(PLAIN, TWO, h=3, switch=4), [0, 1, 2, 3, 6, 9]),
        (PostLocalSGD(PLAIN, TWO, h=3), [2, 5, 8, 11]),
        (DiLoCo(PLAIN, TWO, h=4), [3, 7, 11]),
    ],
)
def test_workers_agree_after_these_turns_and_no_others(algorithm, expected):
    """Seen from outside: replicas of different gradients are equal after an agreement and different otherwise."""
    state, agreed = begin(algorithm), []
    for t in range(12):
        state = advance(algorithm, state, t, (1.0, -1.0 - t))
        if torch.equal(state.replicas[0], state.replicas[1]):
            agreed.append(t)
    assert agreed == expected


@pytest.mark.parametrize("optimizer", [PLAIN, CaffeSGD(0.9, 1e-3), TorchSGD(0.5, 1e-2)])
def test_agreeing_after_every_step_is_synchronous_sgd(optimizer):
    whole = drive(SGD(optimizer, THREE), 30, batches=streams).x
    for algorithm in (LocalSGD(optimizer, THREE, h=1), PostLocalSGD(optimizer, THREE, h=5, switch=30)):
        close(algorithm.model(drive(algorithm, 30, batches=streams)), whole, 1e-10)


def test_that_is_not_so_with_adam():
    """The mean of Adam's steps is not the step of the mean gradient."""
    whole = drive(SGD(AdamW(), THREE), 10, batches=streams).x
    algorithm = LocalSGD(AdamW(), THREE, h=1)
    assert not torch.allclose(algorithm.model(drive(algorithm, 10, batches=streams)), whole, rtol=1e-3)


def test_diloco_with_a_whole_outer_step_and_no_momentum_is_local_sgd():
    local, outer = LocalSGD(AdamW(), THREE, h=4), DiLoCo(AdamW(), THREE, h=4, alpha=1.0, momentum=0.0)
    states = [drive(algorithm, 24, batches=streams) for algorithm in (local, outer)]
    close(*(state.replicas for state in states), 1e-12)
    close(*(state.memory for state in states), 1e-12)  # moments stay with their replica in both


def test_one_worker_of_local_sgd_is_the_optimizer_alone():
    alone = LocalSGD(CaffeSGD(0.9), Alone(), h=3)
    close(alone.model(drive(alone, 20)), drive(SGD(CaffeSGD(0.9), Alone()), 20).x, 1e-12)


@pytest.mark.parametrize(
    ("kind", "settings", "named"),
    [
        (LocalSGD, {"h": 0}, "h=0"),
        (PostLocalSGD, {"switch": -1}, "switch=-1"),
        (DiLoCo, {"alpha": 0.0}, "alpha=0.0"),
        (DiLoCo, {"alpha": float("nan")}, "alpha=nan"),
        (DiLoCo, {"momentum": 1.0}, "momentum=1.0"),
    ],
)
def test_settings_out_of_range_are_named(kind, settings, named):
    with pytest.raises(ValueError, match=named):
        replace(kind(PLAIN, TWO), **settings)
