"""Crossbow's statements on Algorithm 1 and Eqs. 1 and 3, each on the implementation that the figures run."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from reference_impls.crossbow import SMA, SMAState
from suite.battery.quadratic import LR, QUADRATIC, TABLE, D, close, lockstep
from suite.communication.collectives import Local
from suite.training.optimizers import CaffeSGD

RATE = float(LR)


def walk(algorithm: SMA, turns: int, gradients: object, start: SMAState | None = None) -> list[SMAState]:
    """States of a run; ``gradients(points [k, d], turn)`` gives [k, d]."""
    k = algorithm.collective.workers
    states = [start or algorithm.init(torch.ones(D, dtype=torch.float64))]
    for t in range(turns):
        turn, points = lockstep(k, t), algorithm.points(states[-1], lockstep(k, t)).parameters
        states.append(algorithm.update(states[-1], turn, torch.zeros(k), gradients(points, t), LR))  # type: ignore[operator]
    return states


def sma(k: int, **settings: float) -> SMA:
    return SMA(CaffeSGD(), Local(k), **settings)


def own_batches(points: Tensor, t: int) -> Tensor:
    """Gradients of which every learner's is of a batch of its own."""
    k = len(points)
    return torch.stack([QUADRATIC.evaluate(x, TABLE[(t * k + j) % len(TABLE)])[1] for j, x in enumerate(points)])


def test_without_momentum_the_average_is_the_mean_of_the_replicas_and_corrections_conserve_the_sum() -> None:
    states = walk(sma(4, momentum=0.0), 30, own_batches)
    for t, (before, after) in enumerate(pairwise(states)):
        close(after.centre, before.replicas.mean(0))
        moved = RATE * own_batches(before.replicas, t).sum(0)
        close(after.replicas.sum(0) + after.centre, before.replicas.sum(0) + before.centre - moved)


def test_one_learner_with_alpha_one_leaps_over_every_other_of_its_models() -> None:
    states = walk(sma(1, alpha=1.0, momentum=0.0), 20, own_batches)
    for t in range(1, 20):
        older, now = states[t - 1].replicas, states[t].replicas
        close(states[t + 1].replicas, older - RATE * own_batches(now, t))


def test_momentum_looks_one_iteration_back_and_gradients_are_taken_where_replicas_are() -> None:
    algorithm = sma(4)
    for before, after in pairwise(walk(algorithm, 10, own_batches)):
        assert torch.equal(after.previous, before.centre)
        assert torch.equal(algorithm.points(before, lockstep(4, 0)).parameters, before.replicas)


def test_replicas_that_read_the_same_data_stay_equal() -> None:
    last = walk(sma(4), 20, lambda points, t: own_batches(points[:1], t).expand(4, -1))[-1]
    assert torch.equal(last.replicas, last.replicas[:1].expand(4, -1))


@pytest.mark.parametrize("k", [2, 4, 8])
def test_a_correction_takes_a_replica_a_kth_of_its_way_to_the_average(k: int) -> None:
    apart = torch.randn(k, D, generator=torch.Generator().manual_seed(k), dtype=torch.float64)
    corrections, _ = sma(k).corrections(apart, torch.zeros(D, dtype=torch.float64))
    close(corrections, apart / k)


def test_replicas_agree_on_the_average_in_time_and_it_varies_less_than_they_do() -> None:
    start = sma(4).init(torch.ones(D, dtype=torch.float64))
    apart = start._replace(replicas=torch.arange(4.0 * D, dtype=torch.float64).view(4, D))
    settled = walk(sma(4), 2500, lambda points, t: points, apart)[-1]
    assert (settled.replicas - settled.centre).abs().max() < 1e-6

    draw = torch.Generator().manual_seed(0)
    noisy = lambda points, t: points + torch.randn(points.shape, generator=draw, dtype=torch.float64)
    tail = walk(sma(4), 800, noisy)[200::5]
    variance = lambda models: torch.stack(models).square().mean()
    assert variance([s.centre for s in tail]) < 0.9 * variance([s.replicas for s in tail])


def test_a_batchs_gradient_is_the_mean_of_its_examples() -> None:
    x = torch.linspace(-1, 2, D, dtype=torch.float64)
    rows = TABLE[0]
    close(torch.stack([QUADRATIC.evaluate(x, row[None])[1] for row in rows]).mean(0), QUADRATIC.evaluate(x, rows)[1])


def test_momentum_in_both_forms_and_a_first_step_without() -> None:
    """Eq. 3: w - rate g + mu (w - w_before), where Caffe keeps a velocity."""
    optimizer = CaffeSGD(0.9)
    w = before = x = torch.ones(D, dtype=torch.float64)
    memory = optimizer.init(x)
    for t in range(30):
        w, before = w - RATE * QUADRATIC.evaluate(w, TABLE[t % len(TABLE)])[1] + 0.9 * (w - before), w
        x, memory = optimizer.step(memory, x, QUADRATIC.evaluate(x, TABLE[t % len(TABLE)])[1], LR)
        close(x, w)
        if t == 0:
            close(w, before - RATE * QUADRATIC.evaluate(before, TABLE[0])[1])
