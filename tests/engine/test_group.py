"""What a group of workers says when an exchange fails: who is missing, and why. Several workers in one process."""

from __future__ import annotations

import inspect
import itertools
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from unittest.mock import Mock

import pytest
import torch
import torch.distributed as dist

from suite.communication import group as group_module
from suite.communication.collectives import Processes
from suite.communication.group import Group, Heartbeat, WorkerLost, join
from suite.optim import joining

PATIENCE = 0.2  # seconds: a look at who is missing takes 0.6 of them


@pytest.fixture
def workers() -> list[Group]:
    """Three workers that have signed after 7, 7 and 5 updates."""
    store = dist.HashStore()
    made = [Group(store, rank, 3, PATIENCE, "gloo") for rank in range(3)]
    for worker, updates in zip(made, (7, 7, 5), strict=True):
        worker.heartbeat.updates = updates
        worker.heartbeat._sign()
    return made


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("connection closed by peer\na stack that nobody reads"), "connection closed by peer"),
        (RuntimeError("timed out. This is typically a sign of a dead worker"), "timed out"),
        (RuntimeError(""), "RuntimeError"),
        (dist.DistNetworkError(""), "DistNetworkError"),
    ],
)
def test_a_failed_exchange_says_why_in_one_line(workers, error, reason):
    with pytest.raises(WorkerLost) as lost, workers[1].watched():
        raise error
    assert str(lost.value).startswith("worker 1 stops: ")
    assert str(lost.value).endswith(f"({reason})")
    assert lost.value.__cause__ is error


def test_what_is_already_told_is_not_told_again(workers):
    told = WorkerLost("worker 0 stops")
    with pytest.raises(WorkerLost) as lost, workers[1].watched():
        raise told
    assert lost.value is told


def test_where_all_others_have_left_the_first_is_named(workers):
    for other in workers[1:]:
        other.heartbeat.stop()
    assert workers[0].heartbeat.suspect() == "worker 1 of 3 has left"


def test_workers_that_disagree_are_told_the_first_fact_that_differs():
    store = dist.HashStore()
    group = Group(store, 0, 2, PATIENCE, "gloo")
    store.set("suite/facts/1/1", '{"batch": 32, "rate": 0.2}')
    with pytest.raises(ValueError, match=r"worker 1 has rate = 0\.2 where worker 0 has 0\.1; start every worker"):
        group.agree({"batch": 32, "rate": 0.1})
    store.set("suite/facts/2/1", '{"batch": 32}')
    group.agree({"batch": 32})


def test_a_new_timeout_is_agreed_and_is_positive():
    store = dist.HashStore()
    group = Group(store, 0, 2, PATIENCE, "gloo")
    group.heartbeat.updates = 3
    store.set("suite/facts/1/1", '{"timeout": 2}')
    group.wait_for(2)
    assert (group.timeout, group.heartbeat.timeout, group.heartbeat.updates) == (2, 2, 3)
    store.set("suite/facts/2/1", '{"timeout": 1}')
    with pytest.raises(ValueError, match="worker 1 has timeout = 1 where worker 0 has 5"):
        group.wait_for(5)
    with pytest.raises(ValueError, match="timeout=0 must be a positive"):
        group.wait_for(0)


def signed(worker: Group) -> bytes:
    return worker.heartbeat._store.get(f"beat/{worker.rank}")


def test_a_heartbeat_signs_until_it_is_stopped_and_never_after(workers, monkeypatch):
    """Four times per timeout: its clock ticks when the test lets it."""
    beat, waits, tick = workers[1].heartbeat, [], threading.Semaphore(0)
    monkeypatch.setattr(beat, "_done", done := threading.Event())
    monkeypatch.setattr(done, "wait", lambda seconds: waits.append(seconds) or not tick.acquire() or done.is_set())
    beat.start()
    seen = [signed(workers[1])]
    for updates in (8, 9):
        beat.updates = updates
        tick.release()
        while signed(workers[1]) == seen[-1]:
            time.sleep(1e-3)
        seen.append(signed(workers[1]))
    assert [int(signature.split()[1]) for signature in seen] == [7, 8, 9]
    assert set(waits) == {PATIENCE / 4}
    monkeypatch.setattr(beat._thread, "join", lambda limit: tick.release() or threading.Thread.join(beat._thread, 60))
    beat.stop()
    assert not beat._thread.is_alive()
    assert signed(workers[1]) == b"finished"


class Ended(Exception):
    """In place of the end of the process."""


def gone() -> None:
    raise dist.DistNetworkError("connection reset by peer")


@pytest.fixture
def ticking(workers, monkeypatch) -> Heartbeat:
    """Worker 1's, over twenty of its ticks, which take no time, while no other worker signs."""
    beat, now, ends = workers[1].heartbeat, [0.0], itertools.cycle([False] * 20 + [True])
    monkeypatch.setattr(beat, "_done", done := threading.Event())
    monkeypatch.setattr(done, "wait", lambda seconds: now.append(now[-1] + seconds) or next(ends))
    monkeypatch.setattr(group_module.time, "monotonic", lambda: now[-1])
    monkeypatch.setattr(group_module.os, "_exit", Mock(side_effect=Ended))
    return beat


@pytest.mark.parametrize("sign", [lambda: None, gone], ids=["worker lost", "store gone"])
def test_a_heartbeat_ends_only_a_process_that_waits_for_others(workers, ticking, monkeypatch, sign):
    monkeypatch.setattr(ticking, "_sign", sign)
    ticking._beat()
    assert ticking._done.is_set()
    with workers[1].watched(), pytest.raises(Ended):
        ticking._beat()


def test_a_process_is_ended_two_timeouts_after_another_was_seen_last(workers, ticking, capfd):
    """One to miss it, and a further one in which an exchange may fail by itself."""
    begun = group_module.time.monotonic()
    with workers[1].watched(), pytest.raises(Ended):
        ticking._beat()
    assert 2 * PATIENCE <= group_module.time.monotonic() - begun <= 3 * PATIENCE
    group_module.os._exit.assert_called_once_with(70)
    told = capfd.readouterr().err
    assert told.startswith(f"worker 1 is ended: worker 0 has not signed for {PATIENCE:g} s; last stack:\n")
    assert "most recent call first" in told


def looked(workers, monkeypatch, alive=()) -> str:
    """Whom worker 0 suspects; ``alive`` sign while it looks, and sleeping takes no time."""
    now = [10.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        for rank in alive:
            workers[rank].heartbeat._sign()

    monkeypatch.setattr(group_module.time, "sleep", sleep)
    monkeypatch.setattr(group_module.time, "monotonic", lambda: now[0])
    return workers[0].heartbeat.suspect()


@pytest.mark.parametrize(
    ("updates", "told"),
    [
        ((7, 7, 5), "worker 2 of 3 is alive but has not answered within 0.2 s; it stands at update 5, this one at 7"),
        ((7, 4, 5), "worker 1 of 3 is alive but has not answered within 0.2 s; it stands at update 4, this one at 7"),
        ((7, 7, 7), "another worker has not answered within 0.2 s"),
    ],
)
def test_of_workers_that_are_alive_the_one_furthest_behind_is_named(workers, monkeypatch, updates, told):
    for worker, made in zip(workers, updates, strict=True):
        worker.heartbeat.updates = made
    assert looked(workers, monkeypatch, alive=(1, 2)) == told


@pytest.mark.parametrize("later", [1, 2])
def test_of_workers_that_are_silent_the_one_seen_least_lately_is_named(workers, monkeypatch, later: int):
    monkeypatch.setattr(group_module.time, "monotonic", lambda: 0.0)
    workers[0].heartbeat._look()
    workers[later].heartbeat._sign()
    assert looked(workers, monkeypatch).startswith(f"worker {3 - later} of 3 is gone")


def test_a_worker_that_never_made_an_update_is_one_of_update_0_and_signs_as_it_starts(workers, monkeypatch):
    store = dist.HashStore()
    pair = [Group(store, rank, 2, PATIENCE, "gloo") for rank in range(2)]
    assert looked(pair, monkeypatch) == "worker 1 of 2 has left"
    monkeypatch.setattr(pair[1].heartbeat._thread, "start", lambda: None)
    pair[1].heartbeat.start()
    assert looked(pair, monkeypatch) == "worker 1 of 2 is gone; it was last seen after update 0"


ODD = ["", " ", "one", "1 2", "1 x summing", "1 " + 5000 * "9" + " ", "\xff", "finished ", "1 2 \x1b[2J"]


@pytest.mark.parametrize("written", ODD, ids=range(len(ODD)))
def test_a_signature_that_is_none_is_silence(workers, monkeypatch, written: str):
    """Whoever reaches the store can write it, also over one that was good, or make reading fail."""
    monkeypatch.setattr(group_module.time, "monotonic", lambda: 0.0)
    workers[0].heartbeat._look()
    workers[1].heartbeat._store.set("beat/1", written)
    assert looked(workers, monkeypatch, alive=(2,)) == "worker 1 of 3 is gone; it was last seen after update 7"


def test_a_worker_that_does_not_come_to_agree_is_lost():
    with pytest.raises(WorkerLost, match="worker 1 of 2 has left"):
        Group(dist.HashStore(), 0, 2, PATIENCE, "gloo").agree({"batch": 32})


def test_one_process_needs_no_other_and_leaves_none(monkeypatch):
    """It exchanges nothing, in whatever lanes, and broadcasts to nobody."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with join(timeout=0.5) as group:
        assert (group.rank, group.size, group.backend, group.timeout) == (0, 1, "gloo", 0.5)
        assert not dist.is_initialized()
        collective = Processes(group, lanes=3)
        rows = torch.ones(1, 4)
        assert collective.sum(rows).tolist() == [1.0] * 4
        assert collective.start(rows).done()
        group.broadcast(rows)
        group.wait_for(0.25)
        assert group.everyone("alone") == ["alone"]
    assert inspect.signature(join).parameters["timeout"].default == joining.group().timeout == 60.0


TWO = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}


@pytest.mark.parametrize(("timeout", "patience"), [(5.0, group_module.START_UP), (90.0, 90.0)])
def test_others_have_the_longer_of_the_timeout_and_the_time_to_start_up_to_come(
    monkeypatch: pytest.MonkeyPatch, timeout: float, patience: float
):
    """torch's store and its first meeting wait as long, whatever an exchange may take later."""
    waits = []

    def meet(url: str, rank: int, size: int, timeout: timedelta) -> Iterator[tuple[dist.Store, int, int]]:
        waits.append(timeout.total_seconds())
        return iter([(dist.HashStore(), rank, size)])

    def connect(backend: str, timeout: timedelta, **_: object) -> None:
        waits.append(timeout.total_seconds())
        raise KeyError(backend)  # no failure of an exchange, which would be waited for

    for name, value in TWO.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(dist, "rendezvous", meet)
    monkeypatch.setattr(dist, "init_process_group", connect)
    with pytest.raises(KeyError), join(timeout=timeout, backend="gloo"):
        pytest.fail("joined alone")
    assert waits == [patience] * 2


@pytest.mark.parametrize(
    ("odd", "error", "message"),
    [
        ({"WORLD_SIZE": "two"}, ValueError, "WORLD_SIZE='two' .* at least 1; start .* or unset WORLD_SIZE"),
        ({"WORLD_SIZE": "0"}, ValueError, "WORLD_SIZE='0' .* at least 1"),
        ({"WORLD_SIZE": ""}, ValueError, "WORLD_SIZE='' .* at least 1"),
        ({"LOCAL_WORLD_SIZE": "y"}, ValueError, "LOCAL_WORLD_SIZE='y' .* whole number"),
        ({"RANK": "-1"}, ValueError, "RANK='-1' .* at least 0"),
        ({"RANK": "2"}, ValueError, "2 processes train together, but RANK=2 is not below WORLD_SIZE=2"),
        ({"RANK": None}, ValueError, "but RANK is not set; start them with torchrun"),
        ({"MASTER_ADDR": None}, ValueError, "but MASTER_ADDR is not set"),
        ({"MASTER_PORT": ""}, ValueError, "but MASTER_PORT is not set"),
        ({"MASTER_PORT": "port"}, ValueError, "MASTER_PORT='port' .* whole number"),
        ({"MASTER_PORT": "1", "RANK": "1"}, WorkerLost, "worker 1 of 2 has not met the others at localhost:1: "),
        ({}, WorkerLost, "worker 0 of 2 has not met the others at localhost:0: .* 1/2"),  # the second never comes
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_an_odd_environment_is_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, odd: dict[str, str | None], error: type[Exception], message: str
):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setattr(group_module, "START_UP", 0.5)
    for name, value in {**TWO, **odd}.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises(error, match=message):
        joining.group(timeout=0.5)
