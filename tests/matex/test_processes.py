"""Several processes: sums, where they meet, and an end when a worker is lost."""

from __future__ import annotations

import re

import bodies
import light_bodies
import psutil
import pytest

from suite.communication import launch
from suite.communication.group import LOST, join
from suite.communication.launch import WorkersFailed, spawn

pytestmark = pytest.mark.processes


def test_sums_over_lanes_with_and_without_copy():
    for rank, seen in enumerate(spawn(bodies.exchange, 2, 3, timeout=30)):
        assert seen["sums"] == [[3.0]] * 4, rank
        assert seen["done"]
        assert seen["same memory"]
        assert seen["untouched"]
        assert seen["rows"] == [6.0] * 4
        assert seen["early"] == [rank > 0, True]


def test_replicas_start_and_stay_equal_by_one_sum_an_update_in_as_many_buffers_as_delays():
    """Without a delay: no buffer but the gradient's own, and no sum before backward has ended."""
    delays, updates = (0, 1, 2, 3), 5
    first, second = spawn(bodies.replicas, 2, delays, timeout=60)
    for delay, one, other in zip(delays, first, second, strict=True):
        drawn, begun, ended = (a == b for a, b in zip(one["weights"], other["weights"], strict=True))
        assert (drawn, begun, ended) == (False, True, True), delay
        assert one["weights"][1] != one["weights"][2]
        assert (one["sums"], one["early"]) == (updates, 0)
        assert (one["buffers"], one["threads"]) == (delay, max(1, delay))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("dies", r"worker 1 of 3 is gone; it was last seen after update \d"),
        ("stops", r"worker 1 of 3 is gone; it was last seen after update \d"),
        ("sleeps", "worker 1 of 3 is alive but has not answered within 3 s; it stands at update 3, this one at 4"),
        ("raises", "worker 1 of 3 has left"),
    ],
)
def test_a_lost_worker_ends_the_others_with_its_name(how, message):
    with pytest.raises(WorkersFailed) as caught:
        spawn(bodies.loses_one, 3, how, timeout=3.0)
    for rank in (0, 2):
        kind, text = caught.value.errors[rank]
        assert kind == "WorkerLost", (rank, kind, text)
    assert any(re.search(message, caught.value.errors[rank][1]) for rank in (0, 2)), caught.value.errors


def test_a_worker_that_nothing_can_interrupt_is_ended_by_its_heartbeat():
    with pytest.raises(WorkersFailed) as caught:
        spawn(bodies.stuck_beside_a_dead_worker, 2, timeout=3.0)
    assert caught.value.errors[0] == ("Died", f"exit status {LOST}")
    assert caught.value.errors[1] == ("Died", "exit status -9")


def test_spawned_workers_meet_where_no_stranger_can_reach_them():
    """A rendezvous store of torch's listens on all addresses and takes keys from anybody; a file does not."""
    assert not {"0.0.0.0", "::"} & {address for worker in spawn(bodies.listening, 2) for address in worker}


def test_workers_have_the_environment_of_now(monkeypatch):
    """They are forked from a process that began with that of then."""
    spawn(light_bodies.surroundings, 1, "SAID")
    monkeypatch.delenv("PATH")
    assert spawn(light_bodies.surroundings, 1, "PATH") == [(None, 1)]
    monkeypatch.setenv("SAID", "now")
    assert spawn(light_bodies.surroundings, 1, "SAID") == [("now", 1)]


def test_workers_that_do_not_stop_when_one_has_failed_are_killed(tmp_path):
    with pytest.raises(WorkersFailed) as caught:
        spawn(light_bodies.waits_for_nobody, 3, str(tmp_path), timeout=0.25)
    assert caught.value.errors == {
        0: ("KeyError", "'lost'"),
        1: ("Killed", "it had not stopped by itself"),
        2: ("Died", "exit status 0"),
    }
    assert not psutil.pid_exists(int((tmp_path / "1").read_text()))


def test_workers_that_do_not_meet_are_started_again(monkeypatch):
    attempts, attempt = [], launch._attempt
    monkeypatch.setattr(launch, "_attempt", lambda *about: attempts.append(attempt(*about)) or attempts[-1])
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "nowhere0")
    with pytest.raises(WorkersFailed, match="WorkerLost"):
        spawn(light_bodies.surroundings, 2, "PATH", timeout=5)
    assert len(attempts) == launch.MEETINGS
    assert all(launch.APART in statuses for statuses in attempts)


def test_refuses_a_timeout_of_nothing_and_a_body_that_workers_cannot_import():
    with pytest.raises(ValueError, match="timeout=0"), join(timeout=0):
        pass
    script = lambda group: None
    script.__module__ = "__main__"
    with pytest.raises(ValueError, match="module that workers can import"):
        spawn(script, 1)
