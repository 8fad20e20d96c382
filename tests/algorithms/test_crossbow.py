"""Crossbow: SMA by hand, its consensus limits, elastic averaging, learners that come and go."""

from __future__ import annotations

import pytest
import torch
from quadratic import BATCHES, LR, QUADRATIC, TABLE, D, close, drive, lockstep, one, streams

from reference_impls import crossbow, inverse_law
from reference_impls.contract import Entry, Told, Turn
from suite.communication.collectives import Local
from suite.training.optimizers import Adam, Caffe

PLAIN, HEAVY = Caffe(), Caffe(0.9, 1e-3)


def advance(config, state, t, gradients, lr=1.0):
    k = len(gradients)
    told = Told(torch.zeros(k), torch.tensor(gradients, dtype=torch.float64)[:, None])
    rate = torch.tensor(lr, dtype=torch.float64)
    return crossbow.tell(config, state, lockstep(k, t), told, collective=Local(k), descent=PLAIN, lr=rate)


def begin(config, k, x0=0.0):
    return crossbow.init(config, torch.full((1,), x0, dtype=torch.float64), k, k, PLAIN)


def test_two_learners_by_hand():
    """alpha = mu = 1/2, rate 1, gradients (1, -3), (0, 2), (1, 0)."""
    config = crossbow.Config(alpha=0.5, momentum=0.5)
    state = begin(config, 2)
    for t, (gradients, replicas, centre) in enumerate(
        (
            ((1.0, -3.0), [-1.0, 3.0], 0.0),  # c = 0
            ((0.0, 2.0), [-0.5, -0.5], 1.0),  # c = (-1/2, 3/2)
            ((1.0, 0.0), [-0.75, 0.25], 0.0),  # c = (-3/4, -3/4); z = 1 - 3/2 + (1 - 0) / 2
        )
    ):
        state = advance(config, state, t, gradients)
        assert state.replicas.ravel().tolist() == replicas
        assert crossbow.model(config, state, Local(2)).tolist() == [centre]


def distance(config, k, turns):
    """How far k replicas, started one away from the centre and never pushed, are from it."""
    state = begin(config, k)
    state = state._replace(replicas=torch.ones(k, 1, dtype=torch.float64))
    for t in range(turns):
        state = advance(config, state, t, [0.0] * k)
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
    config = crossbow.Config(alpha, momentum)
    early, late = distance(config, k, 300), distance(config, k, 600)
    assert (late > early) if grows else (late < early or late < 1e-12)


def test_elastic_averaging_is_marginal_at_nineteen_learners():
    """|1 - alpha (1 + k)| = 1: the sum of both distances alternates in sign and keeps its size."""
    config = crossbow.elastic_averaging(0.1)
    assert distance(config, 19, 400) == pytest.approx(distance(config, 19, 200), rel=1e-9)


def test_one_learner_with_alpha_one_swaps_with_its_centre():
    config = crossbow.Config(momentum=0.0)
    state = begin(config, 1)._replace(replicas=torch.full((1, 1), 5.0, dtype=torch.float64))
    seen = []
    for t in range(4):
        seen.append((state.replicas.item(), state.centre.item()))
        state = advance(config, state, t, [0.0])
    assert seen == [(5, 0), (0, 5), (5, 0), (0, 5)]


@pytest.mark.parametrize("tau", [1, 3])
def test_without_momentum_it_is_elastic_averaging(tau):
    """Zhang et al., every tau turns: x_i <- x_i - a (x_i - z), z <- z + a sum (x_i - z), of old values."""
    config = crossbow.elastic_averaging(0.2, tau)
    state = drive(crossbow, config, 3, 40, descent=PLAIN, batches=streams)
    x = [torch.ones(D, dtype=torch.float64) for _ in range(3)]
    z = torch.ones(D, dtype=torch.float64)
    for t in range(40):
        apart = [0.2 * (xi - z) if t % tau == 0 else torch.zeros_like(z) for xi in x]
        x = [xi - LR * QUADRATIC.evaluate(xi, streams(i, t))[1] - apart[i] for i, xi in enumerate(x)]
        z = z + sum(apart)
    close(state.replicas, torch.stack(x))
    close(state.centre, z)


def test_without_synchronisation_replicas_are_independent_sgd_bit_for_bit():
    state = drive(crossbow, crossbow.Config(tau=0), 3, 60, descent=HEAVY, batches=streams)
    for j in range(3):
        alone = drive(inverse_law, None, 1, 60, descent=HEAVY, batches=lambda worker, number, j=j: streams(j, number))
        assert torch.equal(state.replicas[j], alone.x)
    assert torch.equal(state.centre, torch.ones(D, dtype=torch.float64))


def test_permuted_learners_permute_replicas_and_leave_the_centre():
    order = [2, 0, 3, 1]
    config = crossbow.Config()
    straight = drive(crossbow, config, 4, 60, descent=HEAVY, batches=streams)
    permuted = drive(
        crossbow, config, 4, 60, descent=HEAVY, batches=lambda worker, number: streams(order[worker], number)
    )
    close(permuted.replicas, straight.replicas[order])
    close(permuted.centre, straight.centre)
    assert (straight.replicas[0] - straight.replicas[1]).abs().max() > 1e-3


def test_growth_from_one_learner_to_four_equals_the_rules_written_out():
    """alpha follows 1/k; a new learner starts at the centre, at rest; batches come from one shared pool."""
    config, one_row = crossbow.Config(momentum=0.9), torch.ones(D, dtype=torch.float64)
    state = crossbow.init(config, one_row, 1, 1, HEAVY)
    w, v, z, z_prev = [one_row], [torch.zeros_like(one_row)], one_row, one_row
    t = used = 0
    for k in (1, 2, 4, 3):
        state = crossbow.resize(config, state, k)
        while len(w) < k:
            w, v = [*w, z], [*v, torch.zeros_like(z)]
        w, v = w[:k], v[:k]
        for _ in range(6):
            turn = Turn(t, tuple(Entry(j, t, used + j) for j in range(k)))
            state, _ = one(
                crossbow,
                config,
                state,
                turn,
                collective=Local(k),
                descent=HEAVY,
                batches=lambda worker, number: TABLE[number % BATCHES],
            )
            c = [(wj - z) / k for wj in w]
            for j in range(k):
                _, gradient = QUADRATIC.evaluate(w[j], TABLE[(used + j) % BATCHES])
                v[j] = 0.9 * v[j] + LR * (gradient + 1e-3 * w[j])
                w[j] = w[j] - v[j] - c[j]
            z, z_prev = z + sum(c) + 0.9 * (z - z_prev), z
            t, used = t + 1, used + k
        close(state.replicas, torch.stack(w))
        close(state.centre, z)


@pytest.mark.parametrize(("alpha", "descent"), [(None, HEAVY), (0.2, PLAIN)])
def test_growth_on_two_devices_equals_the_rules_written_out(alpha, descent):
    """Section 3.3 in lists: a reference and its learners on each device, 1 to 3 of them, then 2."""
    config, x0 = crossbow.Config(alpha, momentum=0.9, devices=2), torch.ones(D, dtype=torch.float64)
    state = crossbow.init(config, x0, 2, 2, descent)
    w, v, z, z_prev = [[x0], [x0]], [[0 * x0], [0 * x0]], x0, x0
    t = used = 0
    for m in (1, 2, 3, 2):
        state = crossbow.resize(config, state, 2 * m)
        w = [(device + [z] * m)[:m] for device in w]
        v = [(device + [0 * x0] * m)[:m] for device in v]
        for _ in range(5):
            turn = Turn(t, tuple(Entry(j, t, used + j) for j in range(2 * m)))
            state, _ = one(
                crossbow,
                config,
                state,
                turn,
                collective=Local(2 * m),
                descent=descent,
                batches=lambda worker, number: TABLE[number % BATCHES],
            )
            moved = z + 0.9 * (z - z_prev)
            for g in range(2):
                reference = w[g][0]
                to_centre = (alpha or 1 / 2) * (reference - z)
                moved = moved + to_centre
                taken = 0 * x0
                for j in range(m):
                    _, gradient = QUADRATIC.evaluate(w[g][j], TABLE[(used + g * m + j) % BATCHES])
                    v[g][j] = descent.momentum * v[g][j] + LR * (gradient + descent.decay * w[g][j])
                    to_reference = (alpha or 1 / m) * (w[g][j] - reference)
                    taken = taken + to_reference
                    w[g][j] = w[g][j] - v[g][j] - to_reference
                w[g][0] = w[g][0] - to_centre + taken
            z, z_prev = moved, z
            t, used = t + 1, used + 2 * m
        close(state.replicas, torch.stack(w[0] + w[1]))
        close(state.centre, z)


@pytest.mark.parametrize("descent", [HEAVY, Adam()])
def test_newcomers(descent):
    config = crossbow.Config()
    state = drive(crossbow, config, 2, 10, descent=descent)
    grown = crossbow.resize(config, state, 3)
    assert torch.equal(grown.replicas[2], state.centre)
    assert torch.equal(grown.memory[2], descent.init(state.centre))
    copied = crossbow.resize(crossbow.Config(newcomer="first"), state, 3)
    assert torch.equal(copied.replicas[2], state.replicas[0])
    assert torch.equal(copied.memory[2], state.memory[0])
    for larger in (grown, copied):
        assert torch.equal(larger.replicas[:2], state.replicas)


def test_newcomers_of_two_devices_stand_behind_their_own_reference():
    state = drive(crossbow, crossbow.Config(devices=2), 4, 10, descent=HEAVY)
    for newcomer in ("centre", "first"):
        grown = crossbow.resize(crossbow.Config(devices=2, newcomer=newcomer), state, 6)
        assert torch.equal(grown.replicas[[0, 1, 3, 4]], state.replicas)
        assert torch.equal(grown.memory[[0, 1, 3, 4]], state.memory)
        for place, first in ((2, 0), (5, 2)):
            at_centre = newcomer == "centre"
            assert torch.equal(grown.replicas[place], state.centre if at_centre else state.replicas[first])
            assert torch.equal(grown.memory[place], 0 * state.memory[0] if at_centre else state.memory[first])
        assert torch.equal(crossbow.resize(crossbow.Config(devices=2), grown, 2).replicas, state.replicas[[0, 2]])


def test_restart_in_the_papers_and_in_the_codes_form():
    state = drive(crossbow, crossbow.Config(), 4, 20, descent=HEAVY)
    for restarting, at_rest in (("paper", True), ("code", False)):
        again = crossbow.restart(crossbow.Config(restarting=restarting), state)
        assert torch.equal(again.replicas, state.centre.expand(4, -1))
        assert torch.equal(again.memory, torch.zeros_like(state.memory)) == at_rest
        assert torch.equal(again.previous, state.centre) == at_rest
        assert torch.equal(again.memory, state.memory) != at_rest
    fresh = crossbow.init(crossbow.Config(), state.centre, 4, 4, HEAVY)
    for a, b in zip(crossbow.restart(crossbow.Config(), state), fresh, strict=True):
        assert torch.equal(a, b)


def test_two_levels_by_hand():
    """Two devices of two, alphas 1/2: r = 0 and a replica at 4 on the first, both 2 on the second; z = 1."""
    config = crossbow.Config(momentum=0.0, devices=2)
    state = begin(config, 4, x0=1.0)
    state = state._replace(replicas=torch.tensor([[0.0], [4.0], [2.0], [2.0]], dtype=torch.float64))
    state = advance(config, state, 0, [0.0, 0.0, 0.0, 10.0])
    assert state.replicas.ravel().tolist() == [0 + 0.5 + 2, 4 - 2, 2 - 0.5, 2 - 10]
    assert state.centre.tolist() == [1 - 0.5 + 0.5]


def test_two_levels_keep_devices_alike_and_reach_consensus():
    config = crossbow.Config(devices=2)
    order = [3, 4, 5, 0, 1, 2]
    straight = drive(crossbow, config, 6, 60, descent=HEAVY, batches=streams)
    permuted = drive(
        crossbow, config, 6, 60, descent=HEAVY, batches=lambda worker, number: streams(order[worker], number)
    )
    close(permuted.centre, straight.centre)
    close(permuted.replicas, straight.replicas[order])
    still = begin(config, 6)._replace(replicas=torch.arange(6.0, dtype=torch.float64)[:, None])
    for t in range(600):
        still = advance(config, still, t, [0.0] * 6)
    close(still.replicas, still.centre.expand(6, 1), 1e-9)


def test_one_learner_on_each_device_is_the_flat_form_bit_for_bit():
    flat = drive(crossbow, crossbow.Config(), 4, 30, descent=HEAVY, batches=streams)
    two = drive(crossbow, crossbow.Config(devices=4), 4, 30, descent=HEAVY, batches=streams)
    assert torch.equal(flat.centre, two.centre)
    assert torch.equal(flat.replicas, two.replicas)


@pytest.mark.parametrize(("rows", "each"), [(3, None), (2, None), (2, 1), (4, 2), (3, 2)])
def test_a_sum_refuses_rows_that_do_not_stand_for_its_workers(rows, each):
    with pytest.raises(ValueError, match=f"handed {rows} rows for 4 workers"):
        Local(4).sum(torch.ones(rows, D), each)


def test_a_sum_takes_a_row_for_each_worker_device_or_all():
    for rows, each in ((4, None), (4, 1), (2, 2), (1, 4), (1, None)):
        assert torch.equal(Local(4).sum(torch.ones(rows, D), each), torch.full((D,), float(rows)))


def test_flat_and_two_level_forms_differ():
    flat = drive(crossbow, crossbow.Config(), 4, 30, descent=HEAVY, batches=streams).centre
    two = drive(crossbow, crossbow.Config(devices=2), 4, 30, descent=HEAVY, batches=streams).centre
    assert (flat - two).abs().max() > 1e-4


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
        crossbow.Config(**wrong)


def test_refuses_sizes_that_do_not_fit():
    pairs = crossbow.Config(devices=2)
    with pytest.raises(ValueError, match="spread evenly"):
        begin(pairs, 3)
    for config, rows in ((crossbow.Config(), 0), (pairs, 0), (pairs, 5)):
        with pytest.raises(ValueError, match="resize"):
            crossbow.resize(config, begin(config, 2), rows)
