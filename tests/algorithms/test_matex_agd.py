"""MaTEx: delays against the recurrence written out, layer-wise orders, the largest stable rate."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from math import pi, sin

import pytest
import torch

from reference_impls import matex_agd
from reference_impls.contract import Turn
from reference_impls.inverse_law import SGD
from reference_impls.matex_agd import DelayedSGD
from suite.battery.quadratic import BATCHES, LR, QUADRATIC, TABLE, D, Quadratic, close, drive, lockstep
from suite.communication.collectives import CompletedSum, Local
from suite.training.optimizers import Adam, CaffeSGD, TorchSGD

HEAVY = CaffeSGD(0.9, 1e-2)
SCALED = CaffeSGD(
    0.9,
    1e-2,
    torch.tensor([1.0, 1, 2, 1, 1, 2], dtype=torch.float64),
    torch.tensor([1.0, 1, 0, 1, 1, 0], dtype=torch.float64),
)
BUCKETS = (slice(0, 1), slice(1, 3), slice(3, 6))  # a first of one parameter, as near to the second as can be
NOTHING = torch.zeros(0), torch.zeros(0, D, dtype=torch.float64)


def agd(workers, optimizer=HEAVY, **settings):
    return DelayedSGD(optimizer, Local(workers), **settings)


@pytest.mark.parametrize("solver", ["arrival", "read"])
@pytest.mark.parametrize("delay", [0, 1, 2, 3])
def test_equals_the_recurrence_from_the_first_step_to_the_drain(delay, solver):
    algorithm, turns = agd(1, delay=delay, solver=solver), 40
    state = drive(algorithm, turns)
    assert algorithm.under_way(state) == delay
    for i in range(delay):
        state = algorithm.update(state, Turn(turns + i, ()), *NOTHING, LR)

    x, v = [torch.ones(D, dtype=torch.float64)], torch.zeros(D, dtype=torch.float64)
    for t in range(turns + delay):
        if t < delay:
            x.append(x[-1])
            continue
        late = x[t - delay]
        _, gradient = QUADRATIC.evaluate(late, TABLE[(t - delay) % BATCHES])
        decayed = x[t] if solver == "arrival" else late
        v = 0.9 * v + LR * (gradient + 1e-2 * decayed)
        x.append(x[t] - v)
    close(state.x, x[-1])
    assert state.late == ((),) * delay


def test_delay_of_one_by_hand():
    """Gradients 1, 2, 4 at rate 0.1: x = 1, 1, 0.9, 0.7 and, drained, 0.3."""
    algorithm = agd(1, CaffeSGD(), delay=1)
    state, seen = algorithm.init(torch.ones(1)), []
    for t, gradient in enumerate((1.0, 2.0, 4.0, None)):
        turn = Turn(t, ()) if gradient is None else lockstep(1, t)
        sums = torch.tensor([[gradient or 0.0]])
        state = algorithm.update(state, turn, torch.zeros(1), sums, torch.tensor(0.1))
        seen.append(state.x.item())
    assert seen == pytest.approx([1.0, 0.9, 0.7, 0.3])


def test_the_two_solvers_differ_only_through_weight_decay():
    def run(solver, optimizer):
        return drive(agd(2, optimizer, delay=2, solver=solver), 60).x

    close(run("arrival", CaffeSGD(0.9)), run("read", CaffeSGD(0.9)))
    assert (run("arrival", HEAVY) - run("read", HEAVY)).abs().max() > 1e-6


def test_synchronous_equals_one_device_on_the_joint_batch():
    joint = drive(SGD(HEAVY, Local(1)), 100).x
    close(drive(agd(4), 100).x, joint)
    alone = drive(agd(1), 100).x
    assert torch.equal(alone, joint)


@dataclass
class Slow:
    """A sum that is done only after it has been asked for a number of times."""

    value: torch.Tensor
    patience: int

    def wait(self):
        self.patience = 0
        return self.value

    def done(self):
        self.patience -= 1
        return self.patience < 0


@dataclass(frozen=True)
class Uneven(Local):
    """Sums that arrive in another order than they were started."""

    turn: itertools.cycle = field(default_factory=lambda: itertools.cycle((2, 0, 1)))

    def start(self, rows, each=None):
        return Slow(rows.sum(0), next(self.turn))


@pytest.mark.parametrize("optimizer", [HEAVY, SCALED, TorchSGD(0.9, 1e-2), Adam()])
@pytest.mark.parametrize("order", ["all", "backward", "completed"])
@pytest.mark.parametrize("delay", [0, 2])
def test_layer_wise_is_synchronous_bit_for_bit(delay, order, optimizer):
    whole = drive(agd(4, optimizer, delay=delay), 50).x
    algorithm = agd(4, optimizer, delay=delay, order=order)
    assert torch.equal(drive(algorithm, 50, buckets=BUCKETS).x, whole)


@pytest.mark.parametrize(
    ("order", "expected"), [("all", [0, 1, 2]), ("backward", [0, 1, 2]), ("completed", [1, 2, 0])]
)
def test_orders_of_application(order, expected):
    """The first is slow; the others are done at once."""
    sent = tuple((slice(i, i + 1), Slow(torch.tensor([float(i)]), patience)) for i, patience in enumerate((9, 0, 0)))
    assert [int(total) for _, total in matex_agd.arrivals(order, sent)] == expected


@pytest.mark.parametrize(("order", "waited_for"), [("all", 3), ("backward", 1), ("completed", 1)])
def test_sums_waited_for_before_the_first_is_applied(order, waited_for):
    pendings = [Slow(torch.zeros(1), 9) for _ in range(3)]
    next(matex_agd.arrivals(order, tuple((slice(i, i + 1), p) for i, p in enumerate(pendings))))
    assert sum(pending.patience == 0 for pending in pendings) == waited_for


def test_arrival_order_does_not_change_a_bit():
    x0 = torch.ones(D, dtype=torch.float64)
    states = {}
    for name, collective in (("even", Local(2)), ("uneven", Uneven(2))):
        algorithm = DelayedSGD(HEAVY, collective, 1, "completed")
        state = algorithm.init(x0)
        for t in range(20):
            _, gradient = QUADRATIC.evaluate(state.x, TABLE[t % BATCHES])
            sums = 2 * gradient[None]
            sent = tuple((part, algorithm.send(sums[:, part])) for part in reversed(BUCKETS))
            state = algorithm.update(state, lockstep(2, t), torch.zeros(2), sums, LR, sent)
        states[name] = state.x
    assert torch.equal(states["even"], states["uneven"])


@pytest.mark.parametrize("delay", [0, 1, 2, 3])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize(("fraction", "stable"), [(0.95, True), (1.05, False)])
def test_largest_stable_rate(delay, momentum, fraction, stable):
    """x_{t+1} = x_t - a x_{t-d} has all its roots in the unit circle iff a < 2 sin(pi / (2 (2 d + 1))).

    With momentum the bounds are those that ``reference_impls`` states, by the roots of its polynomial.
    """
    bound = (3.8, 0.1, 0.0512, 0.0348)[delay] if momentum else 2 * sin(pi / (2 * (2 * delay + 1)))
    unit = Quadratic(torch.zeros(96, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
    rate, x0 = torch.tensor(fraction * bound, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    updates = 1500 if momentum else 250  # with momentum the largest root lies closer to the circle
    state = drive(agd(1, CaffeSGD(momentum), delay=delay), updates, x0=x0, lr=rate, problem=unit)
    assert (abs(state.x.item()) < 1) == stable


def test_gradients_travel_without_send_too():
    """A caller that knows nothing of ``send`` has its sums exchanged whole."""
    algorithm = agd(2, CaffeSGD(), delay=1)
    state = algorithm.init(torch.zeros(2))
    for t in range(2):
        sums = torch.tensor([[2.0, 4.0]])
        state = algorithm.update(state, lockstep(2, t), torch.zeros(2), sums, torch.tensor(1.0))
    assert state.x.tolist() == [-1, -2]
    assert isinstance(state.late[0][0][1], CompletedSum)


@pytest.mark.parametrize("wrong", [{"delay": -1}, {"order": "forward"}, {"solver": "later"}])
def test_refuses_a_configuration_that_means_nothing(wrong):
    with pytest.raises(ValueError, match="matex_agd: "):
        agd(1, **wrong)
