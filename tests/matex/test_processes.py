"""Several processes: the same results as one, refusals at the start, and an end when a worker is lost."""

from __future__ import annotations

import itertools
import re

import bodies
import pytest
import torch
from torch import nn

from reference_impls.contract import Turn
from reference_impls.crossbow import SMA
from reference_impls.matex_agd import DelayedSGD
from suite.communication.collectives import Local
from suite.communication.group import LOST, fitting_backend
from suite.distributed.training import WorkersFailed, spawn
from suite.training.flat import FlatModule
from suite.training.optimizers import CaffeSGD, TorchSGD
from suite.training.schedules import rounds

pytestmark = pytest.mark.processes

METHODS = [
    {},
    {"segmented": True, "order": "all"},
    {"segmented": True, "order": "backward"},
    {"segmented": True, "order": "completed"},
    {"delay": 1},
    {"delay": 2},
    {"delay": 3},
    {"delay": 2, "segmented": True, "order": "completed"},
    {"delay": 2, "solver": "read"},
]


def in_one_process(options: dict, workers: int) -> torch.Tensor:
    """The same training with all workers' gradients computed here, one after another."""
    flat = FlatModule(bodies.network())
    inputs, targets = bodies.examples()
    algorithm, lr = DelayedSGD(CaffeSGD(0.9, 1e-2), Local(workers), **options), torch.tensor(0.1, dtype=torch.float64)
    state = algorithm.init(flat.point())
    for turn in itertools.islice(rounds(workers), bodies.UPDATES):
        gradients = []
        for entry in turn.entries:
            flat.load(state.x)
            flat.grad.zero_()
            rows = bodies.batch_of(turn.t, entry.worker, workers)
            nn.functional.cross_entropy(flat.module(inputs[rows]), targets[rows]).backward()
            gradients.append(flat.grad.clone())
        state = algorithm.update(state, turn, torch.zeros(workers), torch.stack(gradients).sum(0)[None], lr)
    for _ in range(algorithm.under_way(state)):
        turn = Turn(turn.t + 1, ())
        state = algorithm.update(state, turn, torch.zeros(0), torch.zeros(0, flat.d), lr)
    return state.x


@pytest.fixture(scope="module", params=[2, 4])
def trained(request) -> tuple[int, list[list[list[float]]]]:
    """Weights by worker and method, the processes started once; layer-wise also in buckets."""
    cases = [{"options": options} for options in METHODS]
    cases += [{"options": {"segmented": True}, "bucket_bytes": size} for size in (300, 10_000)]
    return request.param, spawn(bodies.several, request.param, cases, timeout=30)


@pytest.mark.parametrize("case", range(len(METHODS)), ids=[str(m) for m in METHODS])
def test_equals_one_process(trained, case):
    """Two addends have one sum; gloo adds four in another order, which twelve updates carry to 1e-13 or so."""
    workers, weights = trained
    expected = in_one_process(METHODS[case], workers)
    for held in weights:
        found = torch.tensor(held[case], dtype=torch.float64)
        if workers == 2:
            assert torch.equal(found, expected)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_workers_hold_the_same_bits(trained):
    _, weights = trained
    assert all(held == weights[0] for held in weights)


def test_buckets_and_orders_do_not_change_the_sum(trained):
    """Bit for bit with two workers; with four a segment's place in its buffer decides the order of addition."""
    workers, weights = trained
    synchronous = torch.tensor(weights[0][0], dtype=torch.float64)
    for case in (1, 2, 3, len(METHODS), len(METHODS) + 1):
        found = torch.tensor(weights[0][case], dtype=torch.float64)
        if workers == 2:
            assert torch.equal(found, synchronous)
        torch.testing.assert_close(found, synchronous, rtol=1e-12, atol=1e-12)


def test_delays_differ_from_synchronous(trained):
    _, weights = trained
    for case in (4, 5, 6):
        assert max(abs(a - b) for a, b in zip(weights[0][0], weights[0][case], strict=True)) > 1e-3


def test_sums_over_lanes_with_and_without_copy():
    for rank, seen in enumerate(spawn(bodies.exchange, 2, 3, timeout=30)):
        assert seen["sums"] == [[3.0]] * 4, rank
        assert seen["done"]
        assert seen["same memory"]
        assert seen["untouched"]
        assert seen["rows"] == [6.0] * 4


def test_graphs_that_differ_between_workers_meet_in_the_same_sums():
    first, second = spawn(bodies.different_graphs, 2, timeout=20)
    assert first == second


def test_model_averaging_equals_one_process():
    """An algorithm that asks at a point of its own for every worker and sums corrections by itself."""
    flat, (inputs, targets) = FlatModule(bodies.network()), bodies.examples()
    algorithm, lr = SMA(TorchSGD(), Local(2)), torch.tensor(0.1, dtype=torch.float64)
    state = algorithm.init(flat.point())
    for turn in itertools.islice(rounds(2), bodies.UPDATES):
        gradients = []
        for point, entry in zip(algorithm.points(state, turn).parameters, turn.entries, strict=True):
            flat.load(point)
            flat.grad.zero_()
            rows = bodies.batch_of(turn.t, entry.worker, 2)
            nn.functional.cross_entropy(flat.module(inputs[rows]), targets[rows]).backward()
            gradients.append(flat.grad.clone())
        state = algorithm.update(state, turn, torch.zeros(2), torch.stack(gradients), lr)
    expected = algorithm.model(state)
    for held in spawn(bodies.averaging, 2, timeout=30):
        torch.testing.assert_close(torch.tensor(held, dtype=torch.float64), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("body", "workers", "message"),
    [
        (bodies.other_model, 2, r"worker 1 has model = .* start every worker with the same model"),
        (bodies.other_data, 3, r"worker 2 has number of examples = 101 where worker 0 has 100"),
        (bodies.other_settings, 2, r"worker 1 has algorithm = .*delay=1.* where worker 0 has .*delay=0"),
    ],
)
def test_workers_that_differ_are_refused_on_every_worker(body, workers, message):
    with pytest.raises(WorkersFailed, match=message) as caught:
        spawn(body, workers, timeout=20)
    assert [kind for kind, _ in caught.value.errors.values()] == ["ValueError"] * workers


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("dies", r"worker 1 of 3 is gone; it was last seen after update \d"),
        ("stops", r"worker 1 of 3 is gone; it was last seen after update \d"),
        ("sleeps", "worker 1 of 3 is alive but has not answered within 2 s; it stands at update 3, this one at 4"),
        ("raises", "worker 1 of 3 has left"),
    ],
)
def test_a_lost_worker_ends_the_others_with_its_name(how, message):
    with pytest.raises(WorkersFailed) as caught:
        spawn(bodies.loses_one, 3, how, timeout=2.0)
    for rank in (0, 2):
        kind, text = caught.value.errors[rank]
        assert kind == "WorkerLost", (rank, kind, text)
    assert any(re.search(message, caught.value.errors[rank][1]) for rank in (0, 2)), caught.value.errors


def test_a_worker_that_nothing_can_interrupt_is_ended_by_its_heartbeat():
    with pytest.raises(WorkersFailed) as caught:
        spawn(bodies.stuck_beside_a_dead_worker, 2, timeout=2.0)
    assert caught.value.errors[0] == ("Died", f"exit status {LOST}")
    assert caught.value.errors[1] == ("Died", "exit status -9")


def test_spawned_workers_meet_where_no_stranger_can_reach_them():
    """A rendezvous store of torch's listens on all addresses and takes keys from anybody; a file does not."""
    assert not {"0.0.0.0", "::"} & {address for worker in spawn(bodies.listening, 2) for address in worker}


@pytest.mark.parametrize(
    ("cards", "local", "world", "backend"),
    [
        (0, "2", "2", "gloo"),
        (2, "2", "4", "nccl"),
        (1, "2", "2", "gloo"),
        (1, None, "2", "gloo"),
        (1, None, None, "nccl"),
    ],
)
def test_processes_that_share_a_card_do_not_take_nccl(monkeypatch, cards, local, world, backend):
    for name, value in (("LOCAL_WORLD_SIZE", local), ("WORLD_SIZE", world)):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cards > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    assert fitting_backend() == backend


def test_workers_have_the_environment_of_now_and_their_own_besides(monkeypatch):
    """They are forked from a process that began with that of then."""
    spawn(bodies.surroundings, 1, "SAID")
    monkeypatch.setenv("SAID", "now")
    assert spawn(bodies.surroundings, 1, "SAID", threads=2) == [("now", 2)]
    own = spawn(bodies.surroundings, 2, "SAID", environment=lambda rank: {"SAID": str(rank)})
    assert own == [("0", 1), ("1", 1)]
