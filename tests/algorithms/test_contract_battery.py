"""What every algorithm owes to the contract; a new paper inherits this by a line in CASES."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, NamedTuple

import pytest
import torch
from quadratic import BATCHES, LR, QUADRATIC, TABLE, D, close, drive, lockstep, sent, shares, streams
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.func import vmap
from torch.utils import _pytree as pytree

from reference_impls.contract import Algorithm, Entry, Turn
from reference_impls.crossbow import SMA, elastic_averaging
from reference_impls.inverse_law import SGD
from reference_impls.isgd import ISGD
from reference_impls.matex_agd import DelayedSGD
from reference_impls.rudra import Softsync
from suite.communication.collectives import Local
from suite.training.optimizers import Adam, CaffeSGD

HEAVY = CaffeSGD(0.9, 1e-3)


class Case(NamedTuple):
    algorithm: Algorithm[Any]
    late: bool = False  # gradients read older weights
    buckets: tuple[slice, ...] = ()
    stacks: bool = True  # state is tensors only
    symmetric: bool = True  # workers are alike

    @property
    def workers(self) -> int:
        return self.algorithm.collective.workers


TWO, THREE, FOUR = Local(2), Local(3), Local(4)
ISGD_OF_FIVE = partial(ISGD, HEAVY, TWO, 5, zeta=0.02, margin=0.5)
CASES = {
    "inverse_law": Case(SGD(HEAVY, THREE)),
    "isgd": Case(ISGD_OF_FIVE(thresholds=(9.0,), factors=(1.0, 0.5))),
    "isgd-literal-queue": Case(ISGD_OF_FIVE(queue="literal")),
    "isgd-anchor-after": Case(ISGD_OF_FIVE(anchor="after")),
    "rudra-hardsync": Case(Softsync(HEAVY, THREE, 3, 0)),
    "rudra-softsync": Case(Softsync(HEAVY, THREE, 3, 1, history=3), late=True, symmetric=False),
    "rudra-per-gradient": Case(Softsync(HEAVY, THREE, 3, 1, 4, per_gradient=True), late=True, symmetric=False),
    "matex-synchronous": Case(DelayedSGD(HEAVY, TWO)),
    "matex-delayed": Case(DelayedSGD(HEAVY, TWO, 2), stacks=False),
    "matex-delayed-read": Case(DelayedSGD(HEAVY, TWO, 2, solver="read"), stacks=False),
    "matex-layer-wise": Case(
        DelayedSGD(HEAVY, TWO, 1, "completed", segmented=True),
        buckets=(slice(0, 2), slice(2, 6)),
        stacks=False,
    ),
    "crossbow": Case(SMA(HEAVY, THREE)),
    "crossbow-every-third": Case(SMA(HEAVY, THREE, alpha=0.2, tau=3)),
    "crossbow-elastic": Case(elastic_averaging(HEAVY, THREE, 0.2)),
    "crossbow-two-level": Case(SMA(HEAVY, FOUR, devices=2), symmetric=False),
}
every = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def turn_of(case, t):
    if not case.late:
        return lockstep(case.workers, t)
    return Turn(t, tuple(Entry(j, max(0, t - 2 + j), t) for j in range(case.workers)))


def tensors(value):
    """Every tensor of a state, sums under way included."""
    leaves = pytree.tree_leaves(value)
    return [leaf if isinstance(leaf, torch.Tensor) else leaf.wait() for leaf in leaves if not isinstance(leaf, slice)]


def found_at(points, seed):
    """Losses and gradients that look like any others."""
    draw = torch.Generator().manual_seed(seed)
    losses = 10 * torch.rand(len(points.batch), generator=draw)
    sums = torch.randn(points.parameters.shape, generator=draw, dtype=torch.float64).to(points.parameters.dtype)
    return losses, sums


def start(case, dtype=torch.float64, x0=None):
    return case.algorithm.init(torch.ones(D, dtype=dtype) if x0 is None else x0)


def update(case, state, t, losses, sums, lr=LR):
    return case.algorithm.update(state, turn_of(case, t), losses, sums, lr, sent(case.algorithm, sums, case.buckets))


def advance(case, state, turns, first=0):
    for t in range(first, first + turns):
        points = case.algorithm.points(state, turn_of(case, t))
        state = update(case, state, t, *found_at(points, seed=t))
    return state


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shapes_and_dtypes_stay(case, dtype):
    state = start(case, dtype)
    settled = advance(case, state, 6)  # a pipeline is full by then
    form = [(leaf.shape, leaf.dtype) for leaf in tensors(settled)]
    for t in range(6, 20):
        turn = turn_of(case, t)
        points = case.algorithm.points(settled, turn)
        assert points.parameters.shape == (len(points.shares), D)
        assert points.parameters.dtype == dtype
        assert sum(points.shares) == len(turn.entries) == len(points.batch)
        assert points.batch.dtype == torch.int64
        settled = advance(case, settled, 1, first=t)
        assert [(leaf.shape, leaf.dtype) for leaf in tensors(settled)] == form
    model = case.algorithm.model(settled)
    assert model.shape == (D,)
    assert model.dtype == dtype
    assert not torch.equal(model, torch.ones(D, dtype=dtype))


@every
def test_nothing_passed_in_is_modified(case):
    state = start(case)
    for t in range(25):
        before = copy.deepcopy(state)
        points = case.algorithm.points(state, turn_of(case, t))
        found = found_at(points, seed=t)
        kept, lr = copy.deepcopy(found), LR.clone()
        after = update(case, state, t, *found, lr)
        case.algorithm.model(after)
        for given, copied in ((state, before), (found, kept), (lr, LR)):
            assert all(map(torch.equal, tensors(given), tensors(copied)))
        state = after


@every
def test_resuming_from_a_copied_state_is_bit_equal(case):
    whole = advance(case, start(case), 30)
    half = copy.deepcopy(advance(case, start(case), 17))
    again = advance(case, half, 13, first=17)
    assert all(map(torch.equal, tensors(whole), tensors(again)))


@every
def test_initial_weights_are_not_aliased(case):
    x0 = torch.ones(D, dtype=torch.float64)
    state = start(case, x0=x0)
    x0.zero_()
    assert torch.equal(case.algorithm.model(state), torch.ones(D, dtype=torch.float64))


@pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.symmetric], ids=[name for name, c in CASES.items() if c.symmetric]
)
def test_relabelled_workers_leave_the_model(case):
    def model(batches):
        return case.algorithm.model(drive(case.algorithm, 40, batches=batches, buckets=case.buckets))

    last = case.workers - 1
    close(model(streams), model(lambda worker, number: streams(last - worker, number)), 1e-10)


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


def turns_without_values(case):
    """Several turns on tensors that have shapes and no values; reading one on the host raises."""
    with FakeTensorMode():
        state = start(case)
        for t in range(8):
            points = case.algorithm.points(state, turn_of(case, t))
            losses, sums = torch.empty(len(points.batch)), torch.empty(points.parameters.shape, dtype=torch.float64)
            state = update(case, state, t, losses, sums, torch.empty(()))
        case.algorithm.model(state)


@every
def test_no_tensor_is_read_on_the_host(case):
    turns_without_values(case)


class Reading(SGD):
    """Plain SGD that looks at a loss."""

    def update(self, state, turn, losses, gradients, lr, sent=()):
        return state if losses[0] > 1 else super().update(state, turn, losses, gradients, lr)


def test_the_proof_catches_a_read():
    with pytest.raises(DataDependentOutputException):
        turns_without_values(Case(Reading(HEAVY, Local(2))))


@pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.stacks], ids=[name for name, c in CASES.items() if c.stacks]
)
def test_independent_runs_stack(case):
    """Three runs under vmap, each with its own start, rate, losses and gradients, equal three runs alone."""
    runs, turns = 3, 25
    x0 = torch.arange(1.0, runs + 1, dtype=torch.float64)[:, None].expand(runs, D)
    rates = torch.tensor([0.02, 0.05, 0.1], dtype=torch.float64)
    alone = [start(case, x0=x) for x in x0]
    stacked = vmap(lambda x: start(case, x0=x))(x0)
    for t in range(turns):
        asked = [case.algorithm.points(state, turn_of(case, t)) for state in alone]
        parameters, batch = vmap(lambda s, t=t: case.algorithm.points(s, turn_of(case, t))[::2])(stacked)
        for r, points in enumerate(asked):
            assert torch.equal(batch[r], points.batch)
            close(parameters[r], points.parameters, 1e-11)
        found = [found_at(points, seed=100 * t + r) for r, points in enumerate(asked)]
        alone = [update(case, s, t, *seen, lr) for s, seen, lr in zip(alone, found, rates, strict=True)]
        losses, sums = (torch.stack([seen[i] for seen in found]) for i in (0, 1))
        stacked = vmap(lambda s, l, g, lr, t=t: update(case, s, t, l, g, lr))(stacked, losses, sums, rates)
    for r in range(runs):
        for together, single in zip(tensors(stacked), tensors(alone[r]), strict=True):
            close(together[r].double(), single.double(), 1e-11)
    if isinstance(case.algorithm, ISGD) and case.algorithm.queue == "working":
        assert len(set(stacked.iteration.tolist())) > 1  # runs are on different batches
