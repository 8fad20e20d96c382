"""What a group of workers says when an exchange fails: who is missing, and why. Several workers in one process."""

from __future__ import annotations

import itertools
import threading
import time
from unittest.mock import Mock

import pytest
import torch.distributed as dist

from suite.communication import group as group_module
from suite.communication.group import Group, Heartbeat, WorkerLost

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


def test_a_worker_that_no_longer_signs_is_named_with_its_update(workers):
    assert workers[0].heartbeat.suspect() in {
        "worker 1 of 3 is gone; it was last seen after update 7",
        "worker 2 of 3 is gone; it was last seen after update 5",
    }
    workers[1].heartbeat.stop()  # has finished: nobody misses it
    assert workers[0].heartbeat.suspect() == "worker 2 of 3 is gone; it was last seen after update 5"
    workers[2].heartbeat.stop()
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


def test_a_gpu_that_waits_for_others_is_ended_too(ticking):
    """Its event has not come."""
    ticking.queued = Mock(query=lambda: True)
    ticking._beat()
    ticking.queued = Mock(query=lambda: False)
    with pytest.raises(Ended):
        ticking._beat()


def test_one_worker_alone_has_nobody_to_sign_for():
    beat = Group(dist.HashStore(), 0, 1, PATIENCE, "gloo").heartbeat
    beat.start()
    assert not beat._thread.is_alive()
    beat.stop()
