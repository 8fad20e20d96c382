"""The tests themselves, on algorithms that are handed to them as a :class:`Case`."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.func import vmap
from torch.utils import _pytree as pytree

from reference_impls.contract import Algorithm, GradientRef, Points, Turn
from suite.battery.quadratic import LR, D, close, drive, lockstep, sent, streams
from suite.training.optimizers import CaffeSGD

HEAVY = CaffeSGD(0.9, 1e-3)  # a solver whose momentum and decay an algorithm must carry along


class Case(NamedTuple):
    """An algorithm with what the tests must know of it."""

    algorithm: Algorithm[Any]
    late: bool = False  # gradients read older weights
    buckets: tuple[slice, ...] = ()  # parts of the D parameters that are sent one by one

    @property
    def workers(self) -> int:
        return self.algorithm.collective.workers


def turn_of(case: Case, t: int) -> Turn:
    """Turn t, every worker with a new gradient."""
    if not case.late:
        return lockstep(case.workers, t)
    return Turn(t, tuple(GradientRef(j, max(0, t - 2 + j), t) for j in range(case.workers)))


def tensors(value: Any) -> list[Tensor]:
    """Every tensor of a state, sums under way included."""
    leaves = pytree.tree_leaves(value)
    return [leaf if isinstance(leaf, Tensor) else leaf.wait() for leaf in leaves if not isinstance(leaf, slice)]


def found_at(points: Points, seed: int) -> tuple[Tensor, Tensor]:
    """Losses [n] and sums of gradients [p, D] that look like any others."""
    draw = torch.Generator().manual_seed(seed)
    losses = 10 * torch.rand(len(points.batch), generator=draw)
    sums = torch.randn(points.parameters.shape, generator=draw, dtype=torch.float64).to(points.parameters.dtype)
    return losses, sums


def start(case: Case, dtype: torch.dtype = torch.float64, x0: Tensor | None = None) -> Any:
    """The state at x0, or at ones."""
    return case.algorithm.init(torch.ones(D, dtype=dtype) if x0 is None else x0)


def update(case: Case, state: Any, t: int, losses: Tensor, sums: Tensor, lr: Tensor = LR) -> Any:
    """The state after turn t."""
    return case.algorithm.update(state, turn_of(case, t), losses, sums, lr, sent(case.algorithm, sums, case.buckets))


def advance(case: Case, state: Any, turns: int, first: int = 0) -> Any:
    """The state after so many turns with made-up gradients."""
    for t in range(first, first + turns):
        points = case.algorithm.points(state, turn_of(case, t))
        state = update(case, state, t, *found_at(points, seed=t))
    return state


def turns_without_values(case: Case) -> None:
    """Several turns on tensors that have shapes and no values; reading one on the host raises."""
    with FakeTensorMode():
        state = start(case)
        for t in range(8):
            points = case.algorithm.points(state, turn_of(case, t))
            losses, sums = torch.empty(len(points.batch)), torch.empty(points.parameters.shape, dtype=torch.float64)
            state = update(case, state, t, losses, sums, torch.empty(()))
        case.algorithm.model(state)


class Contract:
    """For every algorithm."""

    def test_shapes_and_dtypes_stay(self, case: Case) -> None:
        for dtype in (torch.float32, torch.float64):
            settled = advance(case, start(case, dtype), 6)  # a pipeline is full by then
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

    def test_nothing_passed_in_is_modified(self, case: Case) -> None:
        state = start(case)
        for t in range(25):
            before = copy.deepcopy(state)
            points = case.algorithm.points(state, turn_of(case, t))
            found = found_at(points, seed=t)
            kept, lr = copy.deepcopy(found), LR.clone()
            after = update(case, state, t, *found, lr)
            reached = copy.deepcopy(after)
            case.algorithm.model(after)
            for given, copied in ((state, before), (found, kept), (lr, LR), (after, reached)):
                assert all(map(torch.equal, tensors(given), tensors(copied)))
            state = after

    def test_resuming_from_a_copied_state_is_bit_equal(self, case: Case) -> None:
        whole = advance(case, start(case), 30)
        half = copy.deepcopy(advance(case, start(case), 17))
        again = advance(case, half, 13, first=17)
        assert all(map(torch.equal, tensors(whole), tensors(again)))

    def test_initial_weights_are_not_aliased(self, case: Case) -> None:
        x0 = torch.ones(D, dtype=torch.float64)
        state = start(case, x0=x0)
        x0.zero_()
        assert torch.equal(case.algorithm.model(state), torch.ones(D, dtype=torch.float64))

    def test_no_tensor_is_read_on_the_host(self, case: Case) -> None:
        turns_without_values(case)


class AlikeWorkers:
    """Workers are alike: which of them is called which makes no difference to the model."""

    def test_relabelled_workers_leave_the_model(self, case: Case) -> None:
        def model(batches: Any) -> Tensor:
            return case.algorithm.model(drive(case.algorithm, 40, batches=batches, buckets=case.buckets))

        last = case.workers - 1
        close(model(streams), model(lambda worker, number: streams(last - worker, number)), 1e-10)


class Stackable:
    """The state is tensors only, so that independent runs can be computed as one."""

    def test_independent_runs_stack(self, case: Case) -> None:
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
