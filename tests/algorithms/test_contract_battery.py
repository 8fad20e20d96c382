"""What every algorithm owes to the contract; a new paper inherits this by a line in CASES."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import pytest
import torch
from quadratic import BATCHES, LR, QUADRATIC, TABLE, D, close, drive, lockstep, shares, streams
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.func import vmap
from torch.utils import _pytree as pytree

from reference_impls import crossbow, inverse_law, isgd, matex_agd, rudra
from reference_impls.contract import Entry, Told, Turn
from suite.communication.collectives import Local
from suite.training.optimizers import Adam, Caffe

DESCENT = Caffe(0.9, 1e-3)


class Case(NamedTuple):
    algorithm: Any
    config: Any
    workers: int
    late: bool = False  # gradients read older weights
    segments: tuple[slice, ...] = ()
    stacks: bool = True  # state is tensors only
    symmetric: bool = True  # workers are alike


CASES = {
    "inverse_law": Case(inverse_law, None, 3),
    "isgd": Case(isgd, isgd.Config(5, zeta=0.02, margin=0.5, thresholds=(9.0,), factors=(1.0, 0.5)), 2),
    "isgd-literal-queue": Case(isgd, isgd.Config(5, zeta=0.02, margin=0.5, queue="literal"), 2),
    "isgd-anchor-after": Case(isgd, isgd.Config(5, zeta=0.02, margin=0.5, anchor="after"), 2),
    "rudra-hardsync": Case(rudra, rudra.Config(3, 0), 3),
    "rudra-softsync": Case(rudra, rudra.Config(3, 1, history=3), 3, late=True, symmetric=False),
    "rudra-per-gradient": Case(rudra, rudra.Config(3, 1, 4, per_gradient=True), 3, late=True, symmetric=False),
    "matex-synchronous": Case(matex_agd, matex_agd.Config(), 2),
    "matex-delayed": Case(matex_agd, matex_agd.Config(2), 2, stacks=False),
    "matex-delayed-read": Case(matex_agd, matex_agd.Config(2, solver="read"), 2, stacks=False),
    "matex-layer-wise": Case(
        matex_agd,
        matex_agd.Config(1, "completed", segmented=True),
        2,
        segments=(slice(0, 2), slice(2, 6)),
        stacks=False,
    ),
    "crossbow": Case(crossbow, crossbow.Config(), 3),
    "crossbow-every-third": Case(crossbow, crossbow.Config(alpha=0.2, tau=3), 3),
    "crossbow-elastic": Case(crossbow, crossbow.elastic_averaging(0.2), 3),
    "crossbow-two-level": Case(crossbow, crossbow.Config(devices=2), 4, symmetric=False),
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


def told_for(case, ask, seed):
    """Losses and gradients that look like any others."""
    draw = torch.Generator().manual_seed(seed)
    losses = 10 * torch.rand(len(ask.batch), generator=draw)
    sums = torch.randn(ask.points.shape, generator=draw, dtype=torch.float64).to(ask.points.dtype)
    return with_sent(case, Told(losses, sums))


def with_sent(case, told):
    if not hasattr(case.algorithm, "send"):
        return told
    parts = tuple(reversed(case.segments or (slice(0, D),)))
    collective = Local(case.workers)
    return told._replace(
        sent=tuple((part, case.algorithm.send(case.config, told.sums[:, part], collective)) for part in parts)
    )


def start(case, dtype=torch.float64, x0=None):
    x0 = torch.ones(D, dtype=dtype) if x0 is None else x0
    return case.algorithm.init(case.config, x0, case.workers, case.workers, DESCENT)


def tell(case, state, t, told, lr=LR, descent=DESCENT):
    collective = Local(case.workers)
    return case.algorithm.tell(
        case.config, state, turn_of(case, t), told, collective=collective, descent=descent, lr=lr
    )


def advance(case, state, turns, first=0):
    for t in range(first, first + turns):
        ask = case.algorithm.ask(case.config, state, turn_of(case, t))
        state = tell(case, state, t, told_for(case, ask, seed=t))
    return state


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shapes_and_dtypes_stay(case, dtype):
    state = start(case, dtype)
    settled = advance(case, state, 6)  # a pipeline is full by then
    form = [(leaf.shape, leaf.dtype) for leaf in tensors(settled)]
    for t in range(6, 20):
        turn = turn_of(case, t)
        ask = case.algorithm.ask(case.config, settled, turn)
        assert ask.points.shape == (len(ask.shares), D)
        assert ask.points.dtype == dtype
        assert sum(ask.shares) == len(turn.entries) == len(ask.batch)
        assert ask.batch.dtype == torch.int64
        settled = advance(case, settled, 1, first=t)
        assert [(leaf.shape, leaf.dtype) for leaf in tensors(settled)] == form
    model = case.algorithm.model(case.config, settled, Local(case.workers))
    assert model.shape == (D,)
    assert model.dtype == dtype
    assert not torch.equal(model, torch.ones(D, dtype=dtype))


@every
def test_nothing_passed_in_is_modified(case):
    state = start(case)
    for t in range(25):
        before = copy.deepcopy(state)
        ask = case.algorithm.ask(case.config, state, turn_of(case, t))
        told = told_for(case, ask, seed=t)
        kept, lr = copy.deepcopy(told), LR.clone()
        after = tell(case, state, t, told, lr)
        case.algorithm.model(case.config, after, Local(case.workers))
        for given, copied in ((state, before), (told, kept), (lr, LR)):
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
    assert torch.equal(
        case.algorithm.model(case.config, state, Local(case.workers)), torch.ones(D, dtype=torch.float64)
    )


@pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.symmetric], ids=[name for name, c in CASES.items() if c.symmetric]
)
def test_relabelled_workers_leave_the_model(case):
    def model(batches):
        state = drive(
            case.algorithm,
            case.config,
            case.workers,
            40,
            descent=DESCENT,
            batches=batches,
            segments=case.segments,
        )
        return case.algorithm.model(case.config, state, Local(case.workers))

    last = case.workers - 1
    close(model(streams), model(lambda worker, number: streams(last - worker, number)), 1e-10)


LIMITS = {
    "inverse_law": (inverse_law, None, lambda s: s.x),
    "isgd-stop-0": (isgd, isgd.Config(BATCHES, zeta=0.1, stop=0, margin=0.0), lambda s: s.x),
    "rudra-hardsync": (rudra, rudra.Config(1, 0), lambda s: s.x),
    "rudra-async": (rudra, rudra.Config(1, 1, 5, per_gradient=True), lambda s: s.x),
    "matex-no-delay": (matex_agd, matex_agd.Config(), lambda s: s.x),
    "matex-no-delay-read": (matex_agd, matex_agd.Config(0, "completed", solver="read"), lambda s: s.x),
    "crossbow-never": (crossbow, crossbow.Config(tau=0), lambda s: s.replicas[0]),
}


@pytest.mark.parametrize("descent", [DESCENT, Adam()], ids=["Caffe", "Adam"])
@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS.keys())
def test_plain_sgd_is_a_limit_bit_for_bit(limit, descent):
    """Against the solver called by hand, on one worker."""
    algorithm, config, weights = limit
    x = torch.ones(D, dtype=torch.float64)
    memory = descent.init(x)
    for t in range(60):
        _, gradient = QUADRATIC.evaluate(x, TABLE[t % BATCHES])
        x, memory = descent.step(memory, x, gradient, LR)
    assert torch.equal(weights(drive(algorithm, config, 1, 60, descent=descent, batches=shares(1))), x)


def turns_without_values(case):
    """Several turns on tensors that have shapes and no values; reading one on the host raises."""
    with FakeTensorMode():
        state = start(case)
        for t in range(8):
            ask = case.algorithm.ask(case.config, state, turn_of(case, t))
            told = Told(torch.empty(len(ask.batch)), torch.empty(ask.points.shape, dtype=torch.float64))
            state = tell(case, state, t, with_sent(case, told), torch.empty(()))
        case.algorithm.model(case.config, state, Local(case.workers))


@every
def test_no_tensor_is_read_on_the_host(case):
    turns_without_values(case)


class Reading:
    """Plain SGD that looks at a loss."""

    init, ask, model = inverse_law.init, inverse_law.ask, inverse_law.model

    @staticmethod
    def tell(config, state, turn, told, **given):
        if told.losses[0] > 1:
            return state
        return inverse_law.tell(config, state, turn, told, **given)


def test_the_proof_catches_a_read():
    with pytest.raises(DataDependentOutputException):
        turns_without_values(Case(Reading, None, 2))


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
        asks = [case.algorithm.ask(case.config, state, turn_of(case, t)) for state in alone]
        points, batch = vmap(lambda s, t=t: case.algorithm.ask(case.config, s, turn_of(case, t))[::2])(stacked)
        for r, ask in enumerate(asks):
            assert torch.equal(batch[r], ask.batch)
            close(points[r], ask.points, 1e-11)
        tolds = [told_for(case, ask, seed=100 * t + r)._replace(sent=()) for r, ask in enumerate(asks)]
        alone = [tell(case, s, t, told, lr) for s, told, lr in zip(alone, tolds, rates, strict=True)]
        losses, sums = (torch.stack([told[i] for told in tolds]) for i in (0, 1))
        stacked = vmap(lambda s, l, g, lr, t=t: tell(case, s, t, Told(l, g), lr))(stacked, losses, sums, rates)
    for r in range(runs):
        for together, single in zip(tensors(stacked), tensors(alone[r]), strict=True):
            close(together[r].double(), single.double(), 1e-11)
    if case.algorithm is isgd and case.config.queue == "working":
        assert len(set(stacked.iteration.tolist())) > 1  # runs are on different batches
