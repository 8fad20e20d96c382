"""Softsync in one process: learners in turn, equal to the reference implementation by its recorded vector clock."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import optim_bodies as bodies
import pytest
import torch
import torch.distributed as dist
from door import DECAY, MOMENTUM, RATE, UPDATES, FusedTorch, closure, examples, network, rows, weights

from reference_impls import rudra
from reference_impls.contract import GradientRef, Turn
from reference_impls.rudra_protocol import softsync_rate
from suite.communication.collectives import Local
from suite.communication.group import Group
from suite.communication.launch import WorkersFailed, spawn
from suite.optim import Softsync, parameter_server
from suite.training.optimizers import TorchSGD

LEARNERS = 3


def trained(n: int, dtype: torch.dtype, fused: bool, **options) -> tuple[Softsync, list[Turn]]:
    """After the updates by learners with batches of their own, and the vector clocks."""
    turns: list[Turn] = []
    module = network(dtype)
    settings = {"lr": RATE, "momentum": MOMENTUM, "weight_decay": DECAY, "n": n, "learners": LEARNERS, **options}
    opt = Softsync(module, fused=fused, updates=UPDATES, watch=turns.append, **settings)
    inputs, targets = examples(dtype)
    for push in opt.batches(itertools.count()):
        batch = rows(push // LEARNERS, push % LEARNERS, LEARNERS)
        opt.step(closure(opt, module, inputs[batch], targets[batch]))
    return opt, turns


def replayed(
    turns: list[Turn], n: int, dtype: torch.dtype, fused: bool, per_gradient: bool, history: int = 8
) -> torch.Tensor:
    """The reference implementation with a history, following the clocks; each learner's module for its buffers."""
    modules = [network(dtype) for _ in range(LEARNERS)]
    inputs, targets = examples(dtype)
    solver = (FusedTorch if fused else TorchSGD)(MOMENTUM, DECAY)
    algorithm = rudra.Softsync(solver, Local(LEARNERS), LEARNERS, n, history, per_gradient)
    x0 = torch.cat([p.detach().reshape(-1) for p in modules[0].parameters()])
    state = algorithm.init(x0)
    rate = RATE if per_gradient else softsync_rate(RATE, max(n, 1))
    lr = torch.tensor(rate, dtype=torch.float64 if fused else dtype)

    def gradient(point: torch.Tensor, entry: GradientRef) -> torch.Tensor:
        module, batch = modules[entry.worker], rows(entry.number, entry.worker, LEARNERS)
        torch.nn.utils.vector_to_parameters(point.clone(), module.parameters())
        loss = torch.nn.functional.cross_entropy(module(inputs[batch]), targets[batch])
        return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(module.parameters()))])

    for turn in turns:
        ask = algorithm.points(state, turn)
        points = ask.parameters.repeat_interleave(torch.tensor(ask.shares), 0)
        grads = torch.stack([gradient(point, entry) for point, entry in zip(points, turn.entries, strict=True)])
        sums = torch.stack([part.sum(0) for part in grads.split(ask.shares)])
        state = algorithm.update(state, turn, torch.zeros(len(turn.entries)), sums, lr)
    return state.x


@pytest.mark.parametrize("fused", [False, True], ids=["figures' solver", "fused solver"])
@pytest.mark.parametrize("n", [0, 1, 2, LEARNERS])
@pytest.mark.parametrize("per_gradient", [False, True], ids=["by n", "per gradient"])
def test_one_process_equals_the_replayed_clock_to_the_bit(n: int, fused: bool, per_gradient: bool):
    opt, turns = trained(n, torch.float32, fused, per_gradient=per_gradient)
    assert [turn.t for turn in turns] == list(range(UPDATES))
    stale = [turn.t - entry.read for turn in turns[10:] for entry in turn.entries]
    assert (max(stale) == 0) == (n == 0)
    assert torch.equal(opt.core_state.x, replayed(turns, n, torch.float32, fused, per_gradient))


def test_one_learner_is_torchs_sgd():
    """To rounding: the kernel rounds the ends of a tensor otherwise, and ours are in one."""
    module, plain = network(), network()
    opt = Softsync(module, lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, learners=1)
    sgd = torch.optim.SGD(plain.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, fused=True)
    inputs, targets = examples()
    for t in range(UPDATES):
        for ours, net in ((opt, module), (sgd, plain)):
            ours.step(closure(ours, net, inputs[rows(t)], targets[rows(t)]))
    torch.testing.assert_close(weights(module), weights(plain), rtol=1e-5, atol=1e-6)


@pytest.mark.processes
@pytest.mark.parametrize(("n", "per_gradient"), [(0, False), (1, False), (LEARNERS, False), (LEARNERS, True)])
def test_processes_equal_the_replayed_clock(n: int, per_gradient: bool):
    """Arrival decides the order of sums, so to 1e-12 in float64. Learners end with the server's weights."""
    served, *learners = spawn(bodies.serve, LEARNERS + 1, n, UPDATES, per_gradient, timeout=60)
    turns = [Turn(t, tuple(GradientRef(*entry) for entry in entries)) for t, entries in served["turns"]]
    assert [turn.t for turn in turns] == list(range(UPDATES))
    if n == 0:  # how stale the others' gradients are, and so how well they learn, is the machine's to say
        assert sum(served["losses"][-5:]) < sum(served["losses"][:5])
    history = 1 + max(turn.t - entry.read for turn in turns for entry in turn.entries)
    reference = replayed(turns, n, torch.float64, False, per_gradient, history)
    assert (torch.tensor(served["x"], dtype=torch.float64) - reference).abs().max() < 1e-12
    assert all(values == served["x"] for values in learners)
    started = weights(network(torch.float64))
    assert not torch.isclose(torch.tensor(served["model"], dtype=torch.float64), started).all()


@pytest.mark.processes
def test_schedules_of_rate_momentum_and_decay_reach_the_server():
    """One learner of a server is one process alone: the same settings, and the same bits."""
    (seen, weights_there), (_, weights_here) = spawn(bodies.cycled, 2, timeout=20)
    alone = Group(dist.HashStore(), 0, 1, 20.0, "gloo")
    assert [seen, weights_there] == bodies.cycled(alone)
    assert weights_here == weights_there
    assert len({momentum for groups in seen for _, momentum, _ in groups}) == 12


@pytest.mark.processes
def test_a_killed_learner_does_not_end_softsync(tmp_path: Path):
    with pytest.raises(WorkersFailed):  # the killed learner has no answer
        spawn(bodies.serve_and_lose, 3, 2, 1, str(tmp_path / "said"), timeout=8)
    assert json.loads((tmp_path / "said0").read_text()) == {"t": 60, "lost": [0]}
    assert json.loads((tmp_path / "said2").read_text())["t"] == 60


@pytest.mark.processes
@pytest.mark.parametrize(("lost", "says"), [(1, "learner"), (0, "the server, process 0, is gone")])
def test_hardsync_without_a_learner_and_softsync_without_its_server_end(tmp_path: Path, lost: int, says: str):
    with pytest.raises(WorkersFailed):
        spawn(bodies.serve_and_lose, 3, 0 if lost else 2, lost, str(tmp_path / "said"), timeout=8)
    for rank in {0, 1, 2} - {lost}:
        assert says in json.loads((tmp_path / f"said{rank}").read_text())["error"]


def halved(n: int, learners: int, steps: int, **options) -> list[list[float]]:
    """The weight that the module holds and the server's, after each gradient of w squared over 2 from 64 on."""
    module = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(module.weight, 64.0)
    opt = Softsync(module, lr=0.5, n=n, learners=learners, modulate=False, **options)
    seen = []
    for _ in range(steps):
        opt.zero_grad()
        (module.weight.square().sum() / 2).backward()
        opt.step()
        seen.append([module.weight.item(), opt.average().weight.item()])
    return seen


@pytest.mark.parametrize("fused", [False, True], ids=["figures' solver", "fused solver"])
@pytest.mark.parametrize(
    ("n", "learners", "expected"),
    [
        (1, 1, [[32, 32], [16, 16], [8, 8]]),
        (2, 2, [[64, 32], [32, 0], [0, -16], [-16, -16]]),  # asynchronous: each holds what it pulled after its last
        (1, 2, [[64, 64], [64, 32], [32, 32], [32, 8]]),  # the first learner goes on before the update is made
        (0, 2, [[64, 64], [32, 32], [32, 32], [16, 16]]),
        (2, 4, [[64, 64], [64, 32], [64, 32], [64, 0], [32, 0], [32, -24]]),
    ],
)
def test_learners_compute_on_what_they_pulled(n: int, learners: int, expected: list[list[float]], fused: bool):
    """At a rate of a half, which nothing divides."""
    assert halved(n, learners, len(expected), fused=fused) == expected


def test_a_loader_is_gone_through_over_and_over_until_the_updates_are_made():
    module = torch.nn.Linear(1, 1)
    opt = Softsync(module, lr=0.1, n=1, learners=2, updates=4)
    seen = []
    for batch in opt.batches("abc"):
        seen.append(batch)
        module(torch.ones(1, 1)).sum().backward()
        opt.step()
    assert "".join(seen) == "abcabcab"
    assert list(opt.batches("abc")) == []


def test_every_learner_has_its_own_statistics_and_the_tested_model_their_mean():
    module = torch.nn.BatchNorm1d(1, momentum=1.0)
    opt = Softsync(module, lr=0.1, n=2, learners=2)
    for mean in (3.0, 5.0):
        assert module.running_mean.item() == 0
        module(torch.tensor([[mean - 1], [mean + 1]])).sum().backward()
        opt.step()
    assert module.running_mean.item() == 3
    assert opt.average().running_mean.item() == 4


@pytest.mark.parametrize("n", [0, 1, 2])
def test_after_weights_are_taken_up_all_learners_begin_anew_with_the_first(n: int):
    """In the middle of a round: the gradient that waits is dropped, and none is stale."""
    module, turns = torch.nn.Linear(1, 1), []
    opt = Softsync(module, lr=0.1, n=n, learners=2, watch=turns.append)

    def push(count: int) -> None:
        for _ in range(count):
            module(torch.ones(1, 1)).sum().backward()
            opt.step()

    push(3)
    begun = opt.t
    turns.clear()
    opt.take_up()
    push(2)
    entries = [entry for turn in turns for entry in turn.entries]
    assert [entry.worker for entry in entries] == [0, 1]
    assert [entry.read for entry in entries] == [begun, begun]


def test_several_processes_are_sent_to_the_parameter_server_where_one_is_no_learner():
    group = Group(dist.HashStore(), 0, 2, 0.1, "gloo")
    group.agree = group.broadcast = lambda given: None  # of both it is all alike
    with pytest.raises(ValueError, match="one of them as the server: use `with parameter_server"):
        Softsync(network(), lr=0.1, group=group)
    with (
        pytest.raises(ValueError, match="n=2 with 1 learners"),
        parameter_server(network(), lr=0.1, n=2, updates=1, group=group),
    ):
        pass


@pytest.mark.processes
def test_a_statistics_server_hears_all_and_is_in_nobodys_way(tmp_path: Path):
    """It tests no model before the server has ended: whoever waited for it would wait for ever."""
    server, learner, statistics = spawn(bodies.serve_and_test, 3, 7, 3, str(tmp_path / "done"), timeout=30)
    losses, tests, _, last = statistics
    assert losses[:6] == [(0, number, number, loss) for number, loss in enumerate(server[2][:6])]
    assert math.isnan(losses[6][3]), "the loss of a step without a closure"
    assert last == tests[1][1]
    assert [timestamp for timestamp, _ in tests] == [3, 6]
    assert server[3] == learner[3] < tests[1][1] < tests[0][1]
    assert server[:2] == learner[:2] == ([], [])
    for asked, said in ({"evaluate": weights}, "three processes or more"), ({"epoch": 0}, "one update or more"):
        alone = parameter_server(network(), lr=0.1, n=1, updates=1, **asked)
        with pytest.raises(ValueError, match=said), alone:
            pass
