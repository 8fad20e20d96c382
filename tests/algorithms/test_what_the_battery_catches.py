"""Algorithms that break one promise of the contract each: the battery notices, and so does the problem it runs on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException

from reference_impls.contract import Points
from reference_impls.inverse_law import SGD, SGDState
from suite.battery.contract import AlikeWorkers, Case, Contract, Stackable
from suite.battery.quadratic import BATCHES, EXAMPLES, QUADRATIC, D, close, drive, shares, streams
from suite.communication.collectives import Local
from suite.training.optimizers import CaffeSGD


def case(made: type[SGD], *settings: object) -> Case:
    """Without momentum and decay what an algorithm does to its weights leaves its memory as it was."""
    return Case(made(CaffeSGD(), Local(2), *settings))


@dataclass(frozen=True)
class Counting(SGD):
    """Adds a count that stands in no state, and so is in no copy of one."""

    to: str = "x"
    calls: Iterator[int] = field(default_factory=count)

    def points(self, state, turn):
        points = super().points(state, turn)
        more = 1e-3 * next(self.calls) if self.to == "points" else 0.0
        return points._replace(parameters=points.parameters + more)

    def update(self, state, turn, losses, gradients, lr, sent=()):
        after = super().update(state, turn, losses, gradients, lr)
        if self.to == "points":
            return after
        return after._replace(**{self.to: getattr(after, self.to) + 1e-3 * next(self.calls)})


def sgd(**methods) -> type[SGD]:
    """Plain SGD with methods of another kind."""
    return type("Another", (SGD,), methods)


def spoilt(spoil) -> type[SGD]:
    """Plain SGD whose updated state is spoilt, given the state before."""
    return sgd(update=lambda self, state, *given: spoil(state, SGD.update(self, state, *given)))


def forgetful(self, state, turn, losses, *given):
    losses[0] = 0.0
    return SGD.update(self, state, turn, losses, *given)


def favouring(self, state, turn, losses, gradients, *given):
    """Listens to its first worker most."""
    return SGD.update(self, state, turn, losses, gradients * torch.tensor([[1.5], [0.5]]), *given)


def apart(self, state, turn):
    points = SGD.points(self, state, turn)
    return Points(state.x.expand(len(turn.entries), -1), (1,) * len(turn.entries), points.batch)


Widening = spoilt(lambda state, after: SGDState(*(part.double() for part in after)))
Growing = sgd(  # keeps all memory it ever had
    update=lambda self, state, *given: SGDState(
        (after := SGD.update(self, SGDState(state.x, state.memory[-D:]), *given)).x,
        torch.cat((state.memory, after.memory)),
    )
)
Still = spoilt(lambda state, after: state)
InPlace = spoilt(lambda state, after: SGDState(state.x.copy_(after.x), after.memory))
Forgetful = sgd(update=forgetful)
Noting = sgd(  # notes in its memory, otherwise left as it is, how often it was evaluated
    update=lambda self, state, *given: SGDState(SGD.update(self, state, *given).x, state.memory),
    model=lambda self, state: (state.memory.add_(1), state.x)[1],
)
Halving = sgd(model=lambda self, state: state.x.mul_(0.5))
Aliased = sgd(init=lambda self, x0: SGDState(x0, self.optimizer.init(x0)))
Peeking = sgd(model=lambda self, state: state.x if state.x[0] > 0 else -state.x)
Partial = sgd(points=apart, update=favouring)


@pytest.mark.parametrize(
    ("made", "promise"),
    [
        (Widening, "shapes_and_dtypes_stay"),
        (Growing, "shapes_and_dtypes_stay"),
        (Still, "shapes_and_dtypes_stay"),
        (InPlace, "nothing_passed_in_is_modified"),
        (Forgetful, "nothing_passed_in_is_modified"),
        (Noting, "nothing_passed_in_is_modified"),
        (Halving, "nothing_passed_in_is_modified"),
        (Counting, "resuming_from_a_copied_state_is_bit_equal"),
        (Aliased, "initial_weights_are_not_aliased"),
    ],
)
def test_a_broken_promise_is_noticed(made: type[SGD], promise: str) -> None:
    asked = getattr(Contract(), f"test_{promise}")
    asked(case(SGD))
    with pytest.raises(AssertionError):
        asked(case(made))


def test_a_look_at_the_weights_on_the_host_is_noticed() -> None:
    with pytest.raises(DataDependentOutputException):
        Contract().test_no_tensor_is_read_on_the_host(case(Peeking))


def test_a_favoured_worker_is_noticed() -> None:
    with pytest.raises(AssertionError):
        AlikeWorkers().test_relabelled_workers_leave_the_model(case(Partial))


@pytest.mark.parametrize("to", ["x", "memory", "points"])
def test_stacked_runs_that_are_not_those_alone_are_noticed(to: str) -> None:
    with pytest.raises(AssertionError):
        Stackable().test_independent_runs_stack(case(Counting, to))


def test_the_quadratic_has_its_mean_loss_and_the_gradient_of_that() -> None:
    x = torch.linspace(-1, 2, D, dtype=torch.float64, requires_grad=True)
    examples = torch.tensor([3, 90, 41])
    loss, gradient = QUADRATIC.evaluate(x, examples)
    each = [
        sum(h * (a - b) ** 2 / 2 for h, a, b in zip(QUADRATIC.h, x, QUADRATIC.b[i], strict=True)) for i in examples
    ]
    close(loss, torch.stack(each).mean())
    close(gradient, torch.autograd.grad(loss, x)[0])
    assert torch.equal(QUADRATIC.evaluate(x, examples)[1], gradient)


def test_examples_spread_further_and_further_apart() -> None:
    """Seed fixed: the last third of the examples lies at least twice as far from 0 as the first."""
    first, _, last = QUADRATIC.b.square().mean(1).sqrt().chunk(3)
    assert last.mean() > 2 * first.mean()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_workers_share_a_batch_and_all_batches_are_all_examples(workers: int) -> None:
    of = shares(workers)
    batches = [torch.cat([of(worker, number) for worker in range(workers)]) for number in range(BATCHES)]
    assert torch.cat(batches).sort().values.tolist() == list(range(EXAMPLES))
    assert torch.equal(of(0, BATCHES), of(0, 0))


def test_streams_of_two_workers_are_apart_and_each_passes_through_all_examples() -> None:
    passes = [[streams(worker, number) for number in range(BATCHES)] for worker in (0, 1)]
    assert all(not torch.equal(*pair) for pair in zip(*passes, strict=True))
    for seen in passes:
        assert torch.cat(seen).sort().values.tolist() == list(range(EXAMPLES))


def test_driving_on_from_a_state_is_driving_through() -> None:
    algorithm = SGD(CaffeSGD(0.9), Local(2))
    x0 = torch.zeros(D, dtype=torch.float64)
    whole = drive(algorithm, 30, x0=x0)
    again = drive(algorithm, 13, state=drive(algorithm, 17, x0=x0), start=17)
    assert torch.equal(whole.x, again.x)
    assert not torch.equal(whole.x, drive(algorithm, 30).x)


def test_what_is_close_is_told_from_what_is_not() -> None:
    one = torch.ones(2, dtype=torch.float64)
    close(one, one + 1e-13)
    close(one, one + 1e-9, 1e-8)
    with pytest.raises(AssertionError, match="not close"):
        close(one, one + 1e-9)
