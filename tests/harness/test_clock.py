"""Seconds: those of a clock that is stopped, and those that a connection or a device is charged by its model."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from suite import clock
from suite.clock import Link, WallClock
from suite.experiment import Context


def test_a_clock_counts_training_and_no_pause_and_waits_for_the_device_around_each(monkeypatch: pytest.MonkeyPatch):
    """Three seconds of work, a pause of 50, two more; a device's queue takes a second each time it is waited for."""
    now, seen = [100.0], []
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def synchronise() -> None:
        now[0] += 1.0
        seen.append(now[0])

    wall = WallClock(synchronise=synchronise)
    assert wall.spent == 0.0
    now[0] += 3.0
    with wall.paused() as spent:
        assert spent == wall.spent == 4.0
        now[0] += 50.0
    now[0] += 2.0
    assert wall.spent == 4.0
    with wall.paused() as spent:
        assert spent == 7.0
    assert seen == [104.0, 155.0, 158.0, 159.0]


def test_a_clock_goes_on_from_what_was_spent_before_and_after_a_pause_that_failed(monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    wall = WallClock(10.0)
    now[0] = 1.0
    with contextlib.suppress(KeyError), wall.paused():
        now[0] = 5.0
        raise KeyError
    now[0] = 6.0
    with wall.paused() as spent:
        assert spent == 12.0


LINK = Link(latency=0.5, bandwidth=100.0)


def test_a_message_takes_its_latency_and_its_bytes_over_the_bandwidth():
    assert LINK.seconds(200.0) == 2.5
    assert LINK.seconds(0.0) == 0.5


def test_a_run_is_late_when_it_is_asked_to_stop_or_past_its_deadline(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("suite.experiment.time", SimpleNamespace(monotonic=lambda: 100.0))
    late = lambda **given: Context(tmp_path, {}, **given).late
    assert [late(), late(deadline=101.0), late(deadline=99.0)] == [False, False, True]
    assert late(deadline=101.0, stop=lambda: True)
    assert late(stop=lambda: True)
