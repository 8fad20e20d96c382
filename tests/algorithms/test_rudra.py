"""Rudra: the protocol in integers, and the values along its schedules against a loop that keeps all."""

from __future__ import annotations

import heapq
import random
from math import sqrt

import pytest
import torch

from reference_impls import rudra, rudra_protocol
from reference_impls.contract import GradientRef, Turn
from reference_impls.inverse_law import SGD
from reference_impls.rudra_protocol import Server, average_staleness
from suite.battery.quadratic import LR, QUADRATIC, D, close, drive, one, streams
from suite.communication.collectives import Local
from suite.training.optimizers import CaffeSGD

HEAVY = CaffeSGD(0.9, 1e-3)
RATE = LR / 5


def events(server, count, jitter=0.1):
    """Workers push when done and pull when they may; yields (worker, Turn or None) ``count`` times."""
    draw = random.Random(0)
    queue = [(1 + jitter * draw.random(), worker) for worker in range(server.workers)]
    heapq.heapify(queue)
    blocked = []
    for _ in range(count):
        now, worker = heapq.heappop(queue)
        turn = server.push(worker)
        blocked.append(worker)
        for ready in [w for w in blocked if server.may_pull(w)]:
            blocked.remove(ready)
            server.pull(ready)
            heapq.heappush(queue, (now + 1 + jitter * draw.random(), ready))
        yield worker, turn


def schedule(workers, n, pushes):
    return [turn for _, turn in events(Server(workers, n), pushes) if turn]


def staleness(turns):
    return [turn.t - entry.read for turn in turns for entry in turn.entries]


def softsync(workers, n, optimizer=HEAVY, **settings):
    return rudra.Softsync(optimizer, Local(workers), workers, n, **settings)


def run(workers, n, turns, **settings):
    algorithm = softsync(workers, n, history=1 + max(staleness(turns)), **settings)
    state = algorithm.init(torch.ones(D, dtype=torch.float64))
    for turn in turns:
        state, _ = one(algorithm, state, turn, lr=RATE, batches=streams)
    return state.x


def test_softsync_by_hand():
    """Two learners, c = 1; learner 1 is two updates late: theta = 1 -> 0.9 -> 0.7 -> 0.7 - 0.1 * 4 = 0.3."""
    server, algorithm = Server(2, 2), softsync(2, 2, CaffeSGD(), history=3)
    state = algorithm.init(torch.ones(1))
    for worker, gradient, expected, read in ((0, 1.0, 0.9, 0), (0, 2.0, 0.7, 1), (1, 4.0, 0.3, 0)):
        turn = server.push(worker)
        server.pull(worker)
        assert turn.entries[0].read == read
        if worker == 1:
            assert algorithm.points(state, turn).parameters.tolist() == [[1.0]]
            assert average_staleness(turn) == 2
        state = algorithm.update(state, turn, torch.zeros(1), torch.tensor([[gradient]]), torch.tensor(0.1))
        assert state.x.item() == pytest.approx(expected)


def test_two_gradients_of_an_update_are_averaged():
    """Four learners in two groups, c = 2: theta = 1 - 0.1 (3 + 5) / 2."""
    server, algorithm = Server(4, 2), softsync(4, 2, CaffeSGD())
    assert server.push(0) is None
    turn = server.push(3)
    sums = torch.tensor([[3.0], [5.0]])
    state = algorithm.update(algorithm.init(torch.ones(1)), turn, torch.zeros(2), sums, torch.tensor(0.1))
    assert state.x.item() == pytest.approx(0.6)


def test_unless_told_otherwise_an_update_takes_a_gradient_of_each_and_no_older_weights_are_kept():
    algorithm = rudra.Softsync(HEAVY, Local(3), 3)
    assert algorithm.n == 1
    assert len(algorithm.init(torch.ones(1)).versions) == 1


def test_vector_clock_by_hand():
    turn = Turn(5, tuple(GradientRef(worker, read, 0) for worker, read in enumerate((3, 4, 4, 5))))
    assert average_staleness(turn) == 1


def test_hardsync_has_no_staleness_and_is_the_synchronous_mean():
    turns = schedule(6, 0, 360)
    assert set(staleness(turns)) == {0}
    assert all(sorted(entry.worker for entry in turn.entries) == list(range(6)) for turn in turns)
    synchronous = drive(SGD(HEAVY, Local(6)), 60, lr=RATE, batches=streams)
    close(run(6, 0, turns), synchronous.x)


def test_hardsync_waits_for_everyone():
    server = Server(2, 0)
    server.push(0)
    assert not server.may_pull(0)
    for forbidden in (server.push, server.pull):
        with pytest.raises(ValueError, match="learner 0"):
            forbidden(0)
    assert server.push(1).t == 0
    assert server.may_pull(0)
    with pytest.raises(ValueError, match="without pulling"):
        server.push(0)
    assert server.pull(0) == 1


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("per_gradient", [False, True])
def test_one_learner_is_sgd_bit_for_bit(n, per_gradient):
    plain = drive(SGD(HEAVY, Local(1)), 80, lr=RATE, batches=streams)
    assert torch.equal(run(1, n, schedule(1, n, 80), per_gradient=per_gradient), plain.x)


def keep_everything(turns, per_gradient):
    """The update rules over a list of all versions."""
    versions = [torch.ones(D, dtype=torch.float64)]
    memory = HEAVY.init(versions[0])
    for turn in turns:
        total = torch.zeros(D, dtype=torch.float64)
        for worker, read, number in turn.entries:
            _, gradient = QUADRATIC.evaluate(versions[read], streams(worker, number))
            total += gradient / (max(1, turn.t - read) if per_gradient else 1)
        x, memory = HEAVY.step(memory, versions[-1], total / len(turn.entries), RATE)
        versions.append(x)
    return versions[-1]


@pytest.mark.parametrize("n", [0, 1, 2, 4, 12])
@pytest.mark.parametrize("per_gradient", [False, True])
def test_values_equal_a_loop_that_keeps_every_version(n, per_gradient):
    turns = schedule(12, n, 600)
    if n not in (0, 1):
        assert max(staleness(turns)) > 1
    close(run(12, n, turns, per_gradient=per_gradient), keep_everything(turns, per_gradient))


def test_per_gradient_rule_matters():
    turns = schedule(12, 4, 600)
    assert (run(12, 4, turns) - run(12, 4, turns, per_gradient=True)).abs().max() > 1e-3


def test_a_gradient_older_than_the_history_is_an_error():
    algorithm = softsync(4, 4, history=2)
    state = algorithm.init(torch.ones(D))
    with pytest.raises(ValueError, match="set history to at least 4"):
        algorithm.points(state, Turn(5, (GradientRef(0, 2, 0),)))
    with pytest.raises(ValueError, match="set history to at least 3"):
        algorithm.points(state, Turn(5, (GradientRef(0, 3, 0),)))


def test_gradients_are_gathered_in_the_order_of_their_timestamps():
    assert rudra.gather(Turn(9, tuple(GradientRef(i, read, 0) for i, read in enumerate((1, 1, 8))))) == (
        [1, 8],
        (2, 1),
    )
    with pytest.raises(ValueError, match="order of their reads"):
        rudra.gather(Turn(9, (GradientRef(0, 8, 0), GradientRef(1, 1, 0))))


def test_points_serve_a_later_turn_whose_weights_exist():
    turns = schedule(6, 6, 60)
    algorithm = softsync(6, 6, history=1 + max(staleness(turns)))
    state, asked = algorithm.init(torch.ones(D, dtype=torch.float64)), 0
    ahead = {}
    for turn in turns:
        for later in turns[turn.t + 1 : turn.t + 4]:
            if later.entries[0].read <= turn.t:
                ahead.setdefault(later.t, algorithm.points(state, later).parameters)
        if turn.t in ahead:
            assert torch.equal(ahead[turn.t], algorithm.points(state, turn).parameters)
            asked += 1
        state, _ = one(algorithm, state, turn, lr=RATE)
    assert asked > 40


def test_rates():
    """lambda = 30, mu = 128, B = 128: sqrt(30); n = 4: a quarter, whatever mu."""
    assert rudra_protocol.hardsync_rate(0.1, 30, 128) == pytest.approx(0.1 * sqrt(30))
    assert rudra_protocol.hardsync_rate(0.1, 1, 128) == 0.1
    assert rudra_protocol.softsync_rate(0.1, 4) == 0.025


@pytest.mark.parametrize("wrong", [(0, 0, 1), (4, 5, 1), (4, -1, 1), (4, 2, 0)])
def test_refuses_a_configuration_that_means_nothing(wrong):
    with pytest.raises(ValueError, match="rudra: "):
        softsync(*wrong[:2], history=wrong[2])


def test_refuses_workers_that_are_not_those_of_the_sums():
    with pytest.raises(ValueError, match="workers=3, but the collective has 2"):
        rudra.Softsync(HEAVY, Local(2), 3)


@pytest.mark.parametrize("asked", [Server.push, Server.may_pull, Server.pull])
@pytest.mark.parametrize("worker", [-1, 3])
def test_refuses_an_unknown_learner(worker, asked):
    with pytest.raises(ValueError, match="counted from 0"):
        asked(Server(3, 1), worker)


def test_a_learner_may_compute_several_gradients_before_it_pushes_one():
    """Each has a batch of its own, on the weights that it holds."""
    server = Server(2, 2)
    assert [server.begin(1) for _ in range(3)] == [GradientRef(1, 0, number) for number in range(3)]
