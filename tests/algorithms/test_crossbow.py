"""Crossbow: SMA by hand, its consensus limits, elastic averaging, learners that come and go."""

from __future__ import annotations

import pytest
import torch

from reference_impls.contract import GradientRef, Turn
from reference_impls.crossbow import SMA, continues, elastic_averaging
from reference_impls.inverse_law import SGD
from suite.battery.quadratic import BATCHES, LR, QUADRATIC, TABLE, D, close, drive, lockstep, one, streams
from suite.communication.collectives import Local
from suite.training.optimizers import Adam, CaffeSGD

PLAIN, HEAVY = CaffeSGD(), CaffeSGD(0.9, 1e-3)


def sma(k, optimizer=PLAIN, **settings):
    return SMA(optimizer, Local(k), **settings)


def advance(algorithm, state, t, gradients, lr=1.0):
    k = len(gradients)
    sums, rate = torch.tensor(gradients, dtype=torch.float64)[:, None], torch.tensor(lr, dtype=torch.float64)
    return algorithm.update(state, lockstep(k, t), torch.zeros(k), sums, rate)


def begin(algorithm, x0=0.0):
    return algorithm.init(torch.full((1,), x0, dtype=torch.float64))


def test_two_learners_by_hand():
    """alpha = mu = 1/2, rate 1, gradients (1, -3), (0, 2), (1, 0)."""
    algorithm = sma(2, alpha=0.5, momentum=0.5)
    state = begin(algorithm)
    for t, (gradients, replicas, centre) in enumerate(
        (
            ((1.0, -3.0), [-1.0, 3.0], 0.0),  # c = 0
            ((0.0, 2.0), [-0.5, -0.5], 1.0),  # c = (-1/2, 3/2)
            ((1.0, 0.0), [-0.75, 0.25], 0.0),  # c = (-3/4, -3/4); z = 1 - 3/2 + (1 - 0) / 2
        )
    ):
        state = advance(algorithm, state, t, gradients)
        assert state.replicas.ravel().tolist() == replicas
        assert algorithm.model(state).tolist() == [centre]


def distance(algorithm, turns):
    """How far k replicas, started one away from the centre and never pushed, are from it."""
    k = algorithm.collective.workers
    state = begin(algorithm)._replace(replicas=torch.ones(k, 1, dtype=torch.float64))
    for t in range(turns):
        state = advance(algorithm, state, t, [0.0] * k)
    apart = (state.replicas - state.centre).abs().max() + (state.centre - state.previous).abs().max()
    return float(apart)


@pytest.mark.parametrize(
    ("momentum", "alpha", "k", "grows"),
    [
        (0.9, 0.1, 36, False),
        (0.9, 0.1, 37, True),
        (0.9, 0.2, 17, False),
        (0.9, 0.2, 18, True),
        (0.0, 0.1, 18, False),
        (0.0, 0.1, 20, True),
        (0.0, None, 2, False),
        (0.9, None, 32, False),
    ],
)
def test_consensus_limits(momentum, alpha, k, grows):
    """Eigenvalues of the map on (mean replica, z, z_prev) with no gradient."""
    algorithm = sma(k, alpha=alpha, momentum=momentum)
    early, late = distance(algorithm, 300), distance(algorithm, 600)
    assert (late > early) if grows else (late < early or late < 1e-12)


def test_elastic_averaging_is_marginal_at_nineteen_learners():
    """|1 - alpha (1 + k)| = 1: the sum of both distances alternates in sign and keeps its size."""
    algorithm = elastic_averaging(PLAIN, Local(19), 0.1)
    assert distance(algorithm, 400) == pytest.approx(distance(algorithm, 200), rel=1e-9)


@pytest.mark.parametrize("tau", [1, 3])
def test_without_momentum_it_is_elastic_averaging(tau):
    """Zhang et al., every tau turns: x_i <- x_i - a (x_i - z), z <- z + a sum (x_i - z), of old values."""
    state = drive(elastic_averaging(PLAIN, Local(3), 0.2, tau), 40, batches=streams)
    x = [torch.ones(D, dtype=torch.float64) for _ in range(3)]
    z = torch.ones(D, dtype=torch.float64)
    for t in range(40):
        apart = [0.2 * (xi - z) if t % tau == 0 else torch.zeros_like(z) for xi in x]
        x = [xi - LR * QUADRATIC.evaluate(xi, streams(i, t))[1] - apart[i] for i, xi in enumerate(x)]
        z = z + sum(apart)
    close(state.replicas, torch.stack(x))
    close(state.centre, z)


def test_without_synchronisation_replicas_are_independent_sgd_bit_for_bit():
    state = drive(sma(3, HEAVY, tau=0), 60, batches=streams)
    for j in range(3):
        alone = drive(SGD(HEAVY, Local(1)), 60, batches=lambda worker, number, j=j: streams(j, number))
        assert torch.equal(state.replicas[j], alone.x)
    assert torch.equal(state.centre, torch.ones(D, dtype=torch.float64))


def test_permuted_learners_permute_replicas_and_leave_the_centre():
    order = [2, 0, 3, 1]
    straight = drive(sma(4, HEAVY), 60, batches=streams)
    permuted = drive(sma(4, HEAVY), 60, batches=lambda worker, number: streams(order[worker], number))
    close(permuted.replicas, straight.replicas[order])
    close(permuted.centre, straight.centre)
    assert (straight.replicas[0] - straight.replicas[1]).abs().max() > 1e-3


def test_growth_from_one_learner_to_four_equals_the_rules_written_out():
    """alpha follows 1/k; a new learner starts at the centre, at rest; batches come from one shared pool."""
    one_row = torch.ones(D, dtype=torch.float64)
    state = sma(1, HEAVY, momentum=0.9).init(one_row)
    w, v, z, z_prev = [one_row], [torch.zeros_like(one_row)], one_row, one_row
    t = used = 0
    for k in (1, 2, 4, 3):
        algorithm = sma(k, HEAVY, momentum=0.9)
        state = algorithm.resize(state)
        while len(w) < k:
            w, v = [*w, z], [*v, torch.zeros_like(z)]
        w, v = w[:k], v[:k]
        for _ in range(6):
            turn = Turn(t, tuple(GradientRef(j, t, used + j) for j in range(k)))
            state, _ = one(algorithm, state, turn, batches=lambda worker, number: TABLE[number % BATCHES])
            c = [(wj - z) / k for wj in w]
            for j in range(k):
                _, gradient = QUADRATIC.evaluate(w[j], TABLE[(used + j) % BATCHES])
                v[j] = 0.9 * v[j] + LR * (gradient + 1e-3 * w[j])
                w[j] = w[j] - v[j] - c[j]
            z, z_prev = z + sum(c) + 0.9 * (z - z_prev), z
            t, used = t + 1, used + k
        close(state.replicas, torch.stack(w))
        close(state.centre, z)


@pytest.mark.parametrize(("alpha", "optimizer"), [(None, HEAVY), (0.2, PLAIN)])
def test_growth_on_two_devices_equals_the_rules_written_out(alpha, optimizer):
    """Section 3.3 in lists: a reference and its learners on each device, 1 to 3 of them, then 2."""
    settings, x0 = {"alpha": alpha, "momentum": 0.9, "devices": 2}, torch.ones(D, dtype=torch.float64)
    state = sma(2, optimizer, **settings).init(x0)
    w, v, z, z_prev = [[x0], [x0]], [[0 * x0], [0 * x0]], x0, x0
    t = used = 0
    for m in (1, 2, 3, 2):
        algorithm = sma(2 * m, optimizer, **settings)
        state = algorithm.resize(state)
        w = [(device + [z] * m)[:m] for device in w]
        v = [(device + [0 * x0] * m)[:m] for device in v]
        for _ in range(5):
            turn = Turn(t, tuple(GradientRef(j, t, used + j) for j in range(2 * m)))
            state, _ = one(algorithm, state, turn, batches=lambda worker, number: TABLE[number % BATCHES])
            moved = z + 0.9 * (z - z_prev)
            for g in range(2):
                reference = w[g][0]
                to_centre = (alpha or 1 / 2) * (reference - z)
                moved = moved + to_centre
                taken = 0 * x0
                for j in range(m):
                    _, gradient = QUADRATIC.evaluate(w[g][j], TABLE[(used + g * m + j) % BATCHES])
                    v[g][j] = optimizer.momentum * v[g][j] + LR * (gradient + optimizer.decay * w[g][j])
                    to_reference = (alpha or 1 / m) * (w[g][j] - reference)
                    taken = taken + to_reference
                    w[g][j] = w[g][j] - v[g][j] - to_reference
                w[g][0] = w[g][0] - to_centre + taken
            z, z_prev = moved, z
            t, used = t + 1, used + 2 * m
        close(state.replicas, torch.stack(w[0] + w[1]))
        close(state.centre, z)


@pytest.mark.parametrize("optimizer", [HEAVY, Adam()])
def test_newcomers(optimizer):
    state = drive(sma(2, optimizer), 10)
    grown = sma(3, optimizer).resize(state)
    assert torch.equal(grown.replicas[2], state.centre)
    assert torch.equal(grown.memory[2], optimizer.init(state.centre))
    copied = sma(3, optimizer, newcomer="first").resize(state)
    assert torch.equal(copied.replicas[2], state.replicas[0])
    assert torch.equal(copied.memory[2], state.memory[0])
    for larger in (grown, copied):
        assert torch.equal(larger.replicas[:2], state.replicas)


def test_newcomers_of_two_devices_stand_behind_their_own_reference():
    state = drive(sma(4, HEAVY, devices=2), 10)
    for newcomer in ("centre", "first"):
        grown = sma(6, devices=2, newcomer=newcomer).resize(state)
        assert torch.equal(grown.replicas[[0, 1, 3, 4]], state.replicas)
        assert torch.equal(grown.memory[[0, 1, 3, 4]], state.memory)
        for place, first in ((2, 0), (5, 2)):
            at_centre = newcomer == "centre"
            assert torch.equal(grown.replicas[place], state.centre if at_centre else state.replicas[first])
            assert torch.equal(grown.memory[place], 0 * state.memory[0] if at_centre else state.memory[first])
        assert torch.equal(sma(2, devices=2).resize(grown).replicas, state.replicas[[0, 2]])


def test_restart_in_the_papers_and_in_the_codes_form():
    state = drive(sma(4, HEAVY), 20)
    for restarting, at_rest in (("paper", True), ("code", False)):
        again = sma(4, restarting=restarting).restart(state)
        assert torch.equal(again.replicas, state.centre.expand(4, -1))
        assert torch.equal(again.memory, torch.zeros_like(state.memory)) == at_rest
        assert torch.equal(again.previous, state.centre) == at_rest
        assert torch.equal(again.memory, state.memory) != at_rest
    fresh = sma(4, HEAVY).init(state.centre)
    for a, b in zip(sma(4).restart(state), fresh, strict=True):
        assert torch.equal(a, b)


def test_two_levels_by_hand():
    """Two devices of two, alphas 1/2: r = 0 and a replica at 4 on the first, both 2 on the second; z = 1."""
    algorithm = sma(4, momentum=0.0, devices=2)
    state = begin(algorithm, x0=1.0)
    state = state._replace(replicas=torch.tensor([[0.0], [4.0], [2.0], [2.0]], dtype=torch.float64))
    state = advance(algorithm, state, 0, [0.0, 0.0, 0.0, 10.0])
    assert state.replicas.ravel().tolist() == [0 + 0.5 + 2, 4 - 2, 2 - 0.5, 2 - 10]
    assert state.centre.tolist() == [1 - 0.5 + 0.5]


def test_two_levels_keep_devices_alike_and_reach_consensus():
    order = [3, 4, 5, 0, 1, 2]
    straight = drive(sma(6, HEAVY, devices=2), 60, batches=streams)
    permuted = drive(sma(6, HEAVY, devices=2), 60, batches=lambda worker, number: streams(order[worker], number))
    close(permuted.centre, straight.centre)
    close(permuted.replicas, straight.replicas[order])
    algorithm = sma(6, devices=2)
    still = begin(algorithm)._replace(replicas=torch.arange(6.0, dtype=torch.float64)[:, None])
    for t in range(600):
        still = advance(algorithm, still, t, [0.0] * 6)
    close(still.replicas, still.centre.expand(6, 1), 1e-9)


def largest_stable_rate(algorithm):
    """Largest rate times curvature, in steps of 0.005, up to which every state of a quadratic contracts.

    An update is linear in replicas, centre and previous centre, so one update of each unit vector gives its matrix.
    """
    k = algorithm.collective.workers
    unit = torch.eye(k + 2, dtype=torch.float64)
    still = algorithm.init(unit[k])._replace(replicas=unit[:k], previous=unit[k + 1])

    def matrix(rate):
        rate = torch.tensor(rate, dtype=torch.float64)
        after = algorithm.update(still, lockstep(k, 0), torch.zeros(k), unit[:k], rate)
        return torch.cat([after.replicas, after.centre[None], after.previous[None]])

    rates = torch.arange(1, 800, dtype=torch.float64)[:, None, None] * 0.005
    maps = matrix(0.0) + rates * (matrix(1.0) - matrix(0.0))
    grows = torch.linalg.eigvals(maps).abs().amax(-1) >= 1
    return int(grows.int().argmax()) * 0.005


@pytest.mark.parametrize(
    ("devices", "two_levels", "flat"),  # for 1, 2, 3 and 4 learners on each, from the map written out as a matrix
    [
        (1, [0.64, 1.32, 1.545, 1.66], [0.64, 1.32, 1.545, 1.66]),
        (2, [1.32, 0.555, 0.465, 0.425], [1.32, 1.66, 1.77, 1.83]),
        (3, [1.545, 0.725, 0.66, 0.63], [1.545, 1.77, 1.845, 1.885]),
        (4, [1.66, 0.8, 0.75, 0.725], [1.66, 1.83, 1.885, 1.915]),
    ],
)
def test_two_levels_contract_up_to_these_rates(devices, two_levels, flat):
    for learners in range(1, 5):
        k = learners * devices
        assert largest_stable_rate(sma(k, devices=devices)) == pytest.approx(two_levels[learners - 1], abs=0.0051)
        assert largest_stable_rate(sma(k)) == pytest.approx(flat[learners - 1], abs=0.0051)


@pytest.mark.parametrize("alpha", [None, 0.2])
def test_the_reference_of_a_lone_device_is_the_centre(alpha):
    """Bit for bit the flat form."""
    flat = drive(sma(4, HEAVY, alpha=alpha), 30, batches=streams)
    lone = drive(sma(4, HEAVY, alpha=alpha, devices=1), 30, batches=streams)
    assert torch.equal(flat.centre, lone.centre)
    assert torch.equal(flat.replicas, lone.replicas)


def test_one_learner_on_each_device_is_the_flat_form_bit_for_bit():
    flat = drive(sma(4, HEAVY), 30, batches=streams)
    two = drive(sma(4, HEAVY, devices=4), 30, batches=streams)
    assert torch.equal(flat.centre, two.centre)
    assert torch.equal(flat.replicas, two.replicas)


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 0.0},
        {"alpha": 1.4},
        {"momentum": 1.0},
        {"tau": -1},
        {"devices": 0},
        {"restarting": "x"},
        {"newcomer": "x"},
    ],
)
def test_refuses_a_configuration_that_means_nothing(wrong):
    with pytest.raises(ValueError, match="crossbow: "):
        sma(2, **wrong)


def test_an_iteration_begins_while_each_worker_has_a_batch_and_the_target_is_not_reached():
    assert [continues(False, left, workers=4) for left in (3, 4, 5)] == [False, True, True]
    assert not continues(True, 100, workers=4)


def test_refuses_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match="spread evenly"):
        begin(sma(3, devices=2))
    for devices, rows in ((None, 0), (2, 0), (2, 5)):
        with pytest.raises(ValueError, match="resize"):
            sma(rows, devices=devices).resize(begin(sma(2, devices=devices)))
