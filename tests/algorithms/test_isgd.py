"""ISGD: the control chart, Algorithms 1 and 2 by hand and against the branching loop, the limits in SGD."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from reference_impls import isgd
from reference_impls.inverse_law import SGD
from reference_impls.isgd import ISGD
from suite.battery.quadratic import BATCHES, LR, QUADRATIC, TABLE, D, close, drive, lockstep, one, shares
from suite.communication.collectives import Local
from suite.training.optimizers import CaffeSGD

PLAIN, HEAVY = CaffeSGD(), CaffeSGD(momentum=0.9, decay=1e-3)


def made(batches, optimizer=PLAIN, workers=1, **settings):
    return ISGD(optimizer, Local(workers), batches, **settings)


def feed(algorithm, state, psi, gradient=(0.0, 0.0), lr=0.1):
    sums, rate = torch.tensor([gradient], dtype=torch.float64), torch.tensor(lr, dtype=torch.float64)
    return algorithm.update(state, lockstep(1, 0), torch.tensor([psi]), sums, rate)


def start(algorithm, x0=(1.0, 2.0)):
    return algorithm.init(torch.tensor(x0, dtype=torch.float64))


def record(algorithm, losses):
    """(mean, limit) after each loss of an unaccelerated run."""
    state, seen = start(algorithm), []
    for psi in losses:
        state = feed(algorithm, state, psi)
        seen.append((float(state.mean), float(state.limit)))
    return seen


def test_chart_by_hand():
    """n = 2, margin 1: windows (3, 6) and (6, 2) have means 4.5 and 4, deviations 1.5 and 2."""
    algorithm = made(2, zeta=0.0, stop=0, margin=1.0)
    inf = float("inf")
    assert record(algorithm, [1.0, 3.0, 6.0, 2.0]) == [(1.0, inf), (2.0, inf), (4.5, 6.0), (4.0, 6.0)]


def test_unless_told_otherwise_the_limit_is_three_deviations_above_the_mean():
    assert [limit for _, limit in record(made(2, zeta=0.0, stop=0), [1.0, 3.0, 6.0, 2.0])[2:]] == [9.0, 10.0]


def test_limit_follows_its_definition_on_a_recorded_sequence():
    draw = random.Random(0)
    losses = [draw.expovariate(0.01 + i / 100) for i in range(200)]
    n, margin = 7, 2.5
    found = record(made(n, zeta=0.0, stop=0, margin=margin), losses)
    for t in range(n, len(losses)):
        window = np.array(losses[t - n + 1 : t + 1], dtype=np.float32).astype(float)  # told in float32
        assert found[t] == pytest.approx((window.mean(), window.mean() + margin * window.std()), rel=1e-12)


def charted(values, n):
    """Mean and sum of squared deviations of the window after each loss, by the chart's own steps on floats."""
    mean = m2 = fresh_mean = fresh_m2 = 0.0
    for t, new in enumerate(values):
        place = t % n
        if place == 0:
            fresh_mean = fresh_m2 = 0.0
        fresh_mean, fresh_m2 = isgd.append(fresh_mean, fresh_m2, place, new)
        if t >= n:
            mean, m2 = isgd.replace(mean, m2, n, values[t - n], new)
        if t < n or place == n - 1:
            mean, m2 = fresh_mean, fresh_m2
        yield mean, m2


def drift(count: int, n: int) -> float:
    """Worst relative error of the limit over the falling, noisy losses of ``count`` iterations."""
    draw = np.random.default_rng(0)
    losses = 10 * np.exp(-12 * np.arange(count) / count) * draw.uniform(0.5, 1.5, count)
    checked, worst = set(range(count - 1, n, -count // 97)), 0.0
    for t, (mean, m2) in enumerate(charted(losses.tolist(), n)):
        if t in checked:
            window = losses[t - n + 1 : t + 1]
            exact = window.mean() + 3 * window.std()
            worst = max(worst, abs(mean + 3 * (m2 / n) ** 0.5 - exact) / exact)
    return worst


def test_chart_stays_accurate_over_a_million_losses():
    assert drift(1_000_000, 600) < 1e-13


def test_tensor_chart_equals_the_float_chart_bit_for_bit():
    algorithm, losses = made(5, zeta=0.0, stop=0), torch.rand(40, generator=torch.Generator().manual_seed(0)).tolist()
    state = start(algorithm)
    for new, expected in zip(losses, charted(losses, 5), strict=True):
        state = feed(algorithm, state, new)
        assert (float(state.mean), float(state.m2)) == expected


def test_chart_forgets_a_loss_that_is_not_a_number():
    algorithm = made(3, zeta=0.0, stop=0)
    assert np.isfinite(record(algorithm, [1.0, 2.0, 3.0, float("nan"), 2.0, 1.0, 2.0, 3.0, 1.0])[-1]).all()


def triggered(stop: int):
    """n = 2, losses 1, 1, 1, 9: the window (1, 9) has mean 5 and deviation 4, so limit = 5 + 4 / 2 = 7."""
    algorithm = made(2, zeta=0.1, stop=stop, margin=0.5)
    state = start(algorithm)
    for psi in (1.0, 1.0, 1.0):
        state = feed(algorithm, state, psi)
    state = feed(algorithm, state, 9.0, (1.0, -1.0))
    assert float(state.limit) == 7
    close(state.x, torch.tensor([0.9, 2.1], dtype=torch.float64))
    return algorithm, state


def test_algorithm_2_by_hand():
    """Pulled towards w_{t-1} = (1, 2) with weight 1 / n_w = 1 / 2; at most two steps."""
    algorithm, state = triggered(stop=2)
    state = feed(algorithm, state, 8.0, (2.0, 0.0))
    close(state.x, torch.tensor([0.9 - 0.2 + 0.005, 2.1 - 0.005], dtype=torch.float64))
    assert bool(state.chasing)
    assert int(state.iteration) == 3
    state = feed(algorithm, state, 7.5, (0.0, 1.0))
    close(state.x, torch.tensor([0.705 + 0.01475, 2.095 - 0.05 - 0.00475], dtype=torch.float64))
    assert not bool(state.chasing)
    assert int(state.iteration) == 4
    assert float(state.mean) == 5  # losses of Algorithm 2 are not charted


def test_algorithm_2_stops_early_below_the_limit():
    """The step at a loss of 6.5 is still taken, with the factor 6.5 - 7 < 0; the batch is then left."""
    algorithm, state = triggered(stop=5)
    state = feed(algorithm, state, 6.5, (2.0, 0.0))
    close(state.x, torch.tensor([0.9 + 0.1 + 0.005, 2.1 - 0.005], dtype=torch.float64))
    assert not bool(state.chasing)
    assert int(state.iteration) == 4


def test_anchor_after_the_step_pulls_towards_the_stepped_weights():
    algorithm = made(2, zeta=0.1, margin=0.5, anchor="after")
    state = start(algorithm)
    for psi, gradient in ((1.0, (0, 0)), (1.0, (0, 0)), (1.0, (0, 0)), (9.0, (1, -1)), (8.0, (2, 0))):
        state = feed(algorithm, state, psi, gradient)
    close(state.x, torch.tensor([0.7, 2.1], dtype=torch.float64))


def test_small_steps_of_algorithm_2_descend_equation_11():
    """A step over zeta is the derivative of Eq. 11; without the penalty as many steps lead further from w_{t-1}."""
    batch, zeta, anchor, limit = TABLE[0], 1e-3, torch.full((D,), 0.5, dtype=torch.float64), 1.0

    def eleven(w, limit=limit):
        return (QUADRATIC.evaluate(w, batch)[0] - limit) ** 2 / 2 + (w - anchor).square().sum() / D / 2

    algorithm, free = made(2, zeta=zeta, stop=10), torch.ones(D, dtype=torch.float64)
    chasing = torch.tensor(True)
    state = algorithm.init(free)._replace(anchor=anchor, limit=torch.tensor(limit).double(), chasing=chasing)
    for t in range(5):
        psi, gradient = QUADRATIC.evaluate(state.x, batch)
        assert psi > limit
        after = algorithm.update(state, lockstep(1, t), psi[None], gradient[None], LR)
        close((state.x - after.x) / zeta, torch.func.grad(eleven)(state.x), 1e-9)
        assert eleven(after.x) < eleven(state.x)
        psi, gradient = QUADRATIC.evaluate(free, batch)
        state, free = after._replace(chasing=chasing), free - zeta * (psi - limit) * gradient
    assert (state.x - anchor).norm() < (free - anchor).norm()
    solved = QUADRATIC.evaluate(anchor, batch)[0]
    assert eleven(anchor, solved) == 0
    assert min(eleven(anchor, solved + 1e-3), eleven(anchor, solved - 1e-3), eleven(state.x, solved)) > 0


def test_first_possible_trigger_is_the_second_batch_of_the_second_epoch():
    """Line 22 has iter > n: at iteration n a limit exists, and is not tested."""
    algorithm = made(3, zeta=0.1, margin=0.0)
    state = start(algorithm)
    for psi in (1.0, 1.0, 1.0, 50.0):
        state = feed(algorithm, state, psi)
    assert float(state.limit) < 50
    assert not bool(state.chasing)
    assert bool(feed(algorithm, state, 60.0).chasing)


def forward_backward(w, t):
    return QUADRATIC.evaluate(w, TABLE[t % BATCHES])


@pytest.mark.parametrize("queue", ["working", "literal"])
def test_equals_the_branching_loop(queue):
    algorithm = made(BATCHES, HEAVY, zeta=0.02, margin=1.0, queue=queue)
    state = drive(algorithm, 300)
    x, iterations = isgd.literal(
        torch.ones(D, dtype=torch.float64),
        forward_backward,
        gradients=300,
        n=BATCHES,
        stop=5,
        zeta=0.02,
        margin=1.0,
        refill=queue == "working",
        optimizer=HEAVY,
        eta=LR,
    )
    chased = [i.chased for i in iterations]
    assert sum(chased) >= (20 if queue == "working" else 3)
    assert int(state.iteration) + int(state.chasing) == len(iterations)
    close(state.x, x, 1e-9)
    assert float(state.limit) == pytest.approx(iterations[-1].limit, rel=1e-9)


def branching(losses, **settings):
    """What the loops see of these losses, two or three to an epoch; margin 1/2."""
    told, zeros = iter(losses), torch.zeros(2)
    usual = {"n": 2, "stop": 5, "zeta": 0.1, "margin": 0.5, "refill": True, "optimizer": PLAIN, "eta": LR}
    return isgd.literal(
        zeros, lambda w, t: (torch.tensor(next(told)), zeros), gradients=len(losses), **usual | settings
    )[1]


@pytest.mark.parametrize("queue", ["working", "literal"])
def test_every_mean_and_limit_is_that_of_the_branching_loop(queue):
    """Three losses to an epoch: the printed queue is empty after two epochs, which ends limits and holds the mean."""
    losses = [4.0, 1.0, 7.0, 3.0, 8.0, 2.0, 5.0, 9.0, 6.0, 0.5, 3.5]
    found = record(made(3, zeta=0.0, stop=0, margin=0.5, queue=queue), losses)
    seen = branching(losses, n=3, stop=0, refill=queue == "working")
    assert found == [pytest.approx((iteration.mean, iteration.limit)) for iteration in seen]


@pytest.mark.parametrize(
    ("losses", "stop", "chased"),
    [
        ([1.0, 1.0, 9.0, 1.0], 5, [0, 0, 0, 0]),
        ([1.0, 1.0, 1.0, 1.0, 1.0], 5, [0, 0, 0, 0, 0]),
        ([1.0, 1.0, 1.0, 9.0, 7.0, 1.0], 5, [0, 0, 0, 1, 0]),
        ([1.0, 1.0, 1.0, 9.0, 8.0, 1.0], 1, [0, 0, 0, 1, 0]),
        ([1.0, 1.0, 1.0, 9.0, 8.0], 5, [0, 0, 0, 1]),
    ],
    ids=["iteration n", "never above the limit", "down to the limit of 7", "one step at most", "out of gradients"],
)
def test_batches_are_left_where_the_printed_loops_leave_them(losses, stop, chased):
    assert [iteration.chased for iteration in branching(losses, stop=stop)] == chased
    algorithm = made(2, zeta=0.1, stop=stop, margin=0.5)
    state = start(algorithm)
    for psi in losses:
        state = feed(algorithm, state, psi)
    assert int(state.iteration) + int(state.chasing) == len(chased)


@pytest.mark.parametrize(
    ("algorithm", "turns"),
    [
        (made(BATCHES, HEAVY, zeta=0.02, stop=0, margin=1.0), 100),
        (made(BATCHES, HEAVY, zeta=0.02, margin=1e9), 100),
        (made(BATCHES, HEAVY, zeta=0.02, margin=0.0), BATCHES),
    ],
    ids=["stop=0", "nothing above the limit", "first epoch"],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_is_sgd_bit_for_bit(algorithm, turns, dtype):
    x0 = torch.ones(D, dtype=dtype)
    accelerated = drive(algorithm, turns, x0=x0)
    assert torch.equal(accelerated.x, drive(SGD(HEAVY, Local(1)), turns, x0=x0).x)
    assert accelerated.x.dtype == dtype


@pytest.mark.parametrize(("turns", "tolerance"), [(1, 1e-12), (100, 1e-10)])
def test_workers_equal_one_on_the_joint_batch(turns, tolerance):
    joint, split = (drive(made(BATCHES, HEAVY, workers, zeta=0.02, margin=1.0), turns) for workers in (1, 4))
    close(split.x, joint.x, tolerance)
    assert int(split.iteration) == int(joint.iteration)
    if turns == 100:
        assert int(joint.iteration) < 95  # there was something to agree on


def test_a_tighter_limit_triggers_more_often():
    losses = np.random.default_rng(0).exponential(size=600).tolist()
    counts = [sum(i.chased > 0 for i in branching(losses, n=20, margin=margin, stop=1)) for margin in (3, 2, 1)]
    assert 0 < counts[0] < counts[1] < counts[2]


def test_an_update_costs_the_same_for_any_number_of_batches():
    """Counted in calls of tensor operations; the state is immutable, so that one of them copies the queue."""

    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += 1
            return func(*args, **(kwargs or {}))

    counts = []
    for n in (10, 10_000):
        algorithm = made(n, zeta=0.1)
        state = start(algorithm)._replace(iteration=torch.tensor(n + 3))
        with Counting() as seen:
            feed(algorithm, state, 0.5, (1.0, 1.0))
        counts.append(seen.count)
    assert counts[0] == counts[1] > 0


def test_the_mean_gradient_of_a_cycle_is_that_of_all_examples():
    x = torch.linspace(-1, 1, D, dtype=torch.float64)
    gradients = [QUADRATIC.evaluate(x, batch)[1] for batch in TABLE]
    close(torch.stack(gradients).mean(0), QUADRATIC.evaluate(x, TABLE.flatten())[1])


def test_rate_falls_with_the_mean_loss_and_never_rises():
    """The mean passes 3 and rises again; the rate stays low. Nothing falls in the first epoch."""
    algorithm = made(2, zeta=0.0, stop=0, thresholds=(3.0, 1.0), factors=(1.0, 0.5, 0.25))
    state, steps = start(algorithm, (0.0, 0.0)), []
    for psi in (2.0, 2.0, 5.0, 9.0, 4.0, 1.0, 8.0, 0.5, 0.5, 9.0):
        moved = feed(algorithm, state, psi, (-1.0, -1.0), lr=1.0)
        steps.append(float(moved.x[0] - state.x[0]))
        state = moved
    assert steps == [1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]


@pytest.mark.parametrize(
    ("losses", "rates"), [((1.0, 1.0, 1.0), (0.5, 0.5, 0.25)), ((1.0, 1.0, 3.0, 0.5), (0.5, 0.5, 0.5, 0.25))]
)
def test_the_rate_falls_as_soon_as_the_mean_of_an_epoch_is_below_the_threshold(losses, rates):
    """From the first loss of the second epoch on; at a mean of 2, the threshold itself, it has not passed it."""
    algorithm = made(2, zeta=0.0, stop=0, thresholds=(2.0,), factors=(0.5, 0.25))
    state = start(algorithm, (0.0, 0.0))
    for psi, rate in zip(losses, rates, strict=True):
        moved = feed(algorithm, state, psi, (-1.0, -1.0), lr=1.0)
        assert float(moved.x[0] - state.x[0]) == rate
        state = moved


def test_the_batch_asked_for_follows_the_iteration_and_not_the_turn():
    algorithm = made(BATCHES, HEAVY, zeta=0.02, margin=0.5)
    state = algorithm.init(torch.ones(D, dtype=torch.float64))
    asked = []
    for t in range(80):
        asked.append(int(algorithm.points(state, lockstep(1, t)).batch[0]))
        state, _ = one(algorithm, state, lockstep(1, t), batches=shares(1))
    assert asked[0] == 0
    assert set(np.diff(asked)) == {0, 1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"batches": 1},
        {"stop": -1},
        {"zeta": float("nan")},
        {"thresholds": (1.0,)},
        {"thresholds": (1.0, 2.0), "factors": (1, 1, 1)},
        {"thresholds": (1.0, 1.0), "factors": (1, 1, 1)},
        {"queue": "x"},
        {"anchor": "x"},
    ],
)
def test_refuses_a_algorithmuration_that_means_nothing(wrong):
    with pytest.raises(ValueError, match="isgd: "):
        made(**{"batches": 10, "zeta": 0.1, **wrong})
