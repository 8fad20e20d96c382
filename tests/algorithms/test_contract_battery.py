"""What every algorithm owes to the contract, asked of the five papers', of their variants and of their rivals."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.func import vmap

from reference_impls.crossbow import SMA, elastic_averaging
from reference_impls.inverse_law import SGD
from reference_impls.isgd import ISGD
from reference_impls.local_sgd import DiLoCo, LocalSGD, PostLocalSGD
from reference_impls.matex_agd import DelayedSGD
from reference_impls.rudra import Softsync
from suite.battery.contract import (
    HEAVY,
    AlikeWorkers,
    Case,
    Contract,
    Stackable,
    found_at,
    start,
    turn_of,
    turns_without_values,
    update,
)
from suite.battery.quadratic import BATCHES, LR, QUADRATIC, TABLE, D, drive, shares
from suite.communication.collectives import Local
from suite.training.optimizers import Adam, AdamW

TWO, THREE, FOUR = Local(2), Local(3), Local(4)
ISGD_OF_FIVE = partial(ISGD, HEAVY, TWO, 5, zeta=0.02, margin=0.5)
CASES = {
    "inverse_law": Case(SGD(HEAVY, THREE)),
    "isgd": Case(ISGD_OF_FIVE(thresholds=(9.0,), factors=(1.0, 0.5))),
    "isgd-literal-queue": Case(ISGD_OF_FIVE(queue="literal")),
    "isgd-anchor-after": Case(ISGD_OF_FIVE(anchor="after")),
    "rudra-hardsync": Case(Softsync(HEAVY, THREE, 3, 0)),
    "rudra-softsync": Case(Softsync(HEAVY, THREE, 3, 1, history=3), late=True),
    "rudra-per-gradient": Case(Softsync(HEAVY, THREE, 3, 1, 4, per_gradient=True), late=True),
    "matex-synchronous": Case(DelayedSGD(HEAVY, TWO)),
    "matex-delayed": Case(DelayedSGD(HEAVY, TWO, 2)),
    "matex-delayed-read": Case(DelayedSGD(HEAVY, TWO, 2, solver="read")),
    "matex-layer-wise": Case(DelayedSGD(HEAVY, TWO, 1, "completed"), buckets=(slice(0, 2), slice(2, 6))),
    "crossbow": Case(SMA(HEAVY, THREE)),
    "crossbow-every-third": Case(SMA(HEAVY, THREE, alpha=0.2, tau=3)),
    "crossbow-elastic": Case(elastic_averaging(HEAVY, THREE, 0.2)),
    "crossbow-two-level": Case(SMA(HEAVY, FOUR, devices=2)),
    "local-sgd": Case(LocalSGD(HEAVY, THREE, h=3)),
    "post-local-sgd": Case(PostLocalSGD(HEAVY, THREE, h=3, switch=4)),
    "diloco": Case(DiLoCo(AdamW(), THREE, h=3)),
}
NOT_ALIKE = {"rudra-per-gradient", "rudra-softsync", "crossbow-two-level"}
IN_FLIGHT = {"matex-delayed-read", "matex-delayed", "matex-layer-wise"}  # sums under way are part of their state


def of(names):
    return pytest.mark.parametrize("case", [CASES[name] for name in names], ids=names)


@of(list(CASES))
class TestEvery(Contract):
    pass


@of([name for name in CASES if name not in NOT_ALIKE])
class TestAlike(AlikeWorkers):
    pass


@of([name for name in CASES if name not in IN_FLIGHT])
class TestStackable(Stackable):
    pass


@of(list(CASES))
def test_at_the_start_no_exchange_is_under_way(case):
    assert case.algorithm.under_way(start(case)) == 0


LIMITS = {
    "inverse_law": (SGD, lambda s: s.x),
    "isgd-stop-0": (partial(ISGD, batches=BATCHES, zeta=0.1, stop=0, margin=0.0), lambda s: s.x),
    "rudra-hardsync": (partial(Softsync, workers=1, n=0), lambda s: s.x),
    "rudra-async": (partial(Softsync, workers=1, n=1, history=5, per_gradient=True), lambda s: s.x),
    "matex-no-delay": (DelayedSGD, lambda s: s.x),
    "matex-no-delay-read": (partial(DelayedSGD, order="completed", solver="read"), lambda s: s.x),
    "crossbow-never": (partial(SMA, tau=0), lambda s: s.replicas[0]),
}


@pytest.mark.parametrize("optimizer", [HEAVY, Adam()], ids=["Caffe", "Adam"])
@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS.keys())
def test_plain_sgd_is_a_limit_bit_for_bit(limit, optimizer):
    """Against the solver called by hand, on one worker."""
    rule, weights = limit
    x = torch.ones(D, dtype=torch.float64)
    memory = optimizer.init(x)
    for t in range(60):
        _, gradient = QUADRATIC.evaluate(x, TABLE[t % BATCHES])
        x, memory = optimizer.step(memory, x, gradient, LR)
    assert torch.equal(weights(drive(rule(optimizer, Local(1)), 60, batches=shares(1))), x)


class Reading(SGD):
    """Plain SGD that looks at a loss."""

    def update(self, state, turn, losses, gradients, lr, sent=()):
        return state if losses[0] > 1 else super().update(state, turn, losses, gradients, lr)


def test_the_proof_catches_a_read():
    with pytest.raises(DataDependentOutputException):
        turns_without_values(Case(Reading(HEAVY, Local(2))))


def test_stacked_runs_of_isgd_part():
    """Under vmap, two runs of other losses come to work on other batches."""
    case = CASES["isgd"]
    stacked = vmap(lambda x: start(case, x0=x))(torch.ones(2, D, dtype=torch.float64))
    for t in range(25):
        seen = [found_at(case.algorithm.points(start(case), turn_of(case, t)), seed=100 * t + r) for r in range(2)]
        losses, sums = (torch.stack([found[i] for found in seen]) for i in (0, 1))
        stacked = vmap(lambda s, l, g, t=t: update(case, s, t, l, g))(stacked, losses, sums)
    assert len(set(stacked.iteration.tolist())) == 2


@pytest.mark.parametrize("made", [SGD, SMA, ISGD, Softsync, DelayedSGD])
def test_only_matex_sends_gradients_itself(made: type):
    assert made.sends == (made is DelayedSGD)


def test_an_algorithm_is_written_by_its_settings_alone():
    assert repr(SGD(HEAVY, THREE)) == "SGD()"
