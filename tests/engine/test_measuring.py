"""What a measurement of executions covers, by which clock it is taken, and what is made of it."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from engine_cases import digits

from suite.experiment import Experiment
from suite.runner import autotune
from suite.runner.autotune import DEFAULT, decide, measure_training
from suite.training.gradients import native
from suite.training.numerics import choose


def new(spec, threads=1):
    return choose(spec, "cpu", threads)


class Compiled:
    """Stands for the native gradients of a problem, without a compiler."""

    def __init__(self, problem, build=None, direct=False):
        self.library = SimpleNamespace(build="direct" if direct else "a build", winograd=True)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> dict:
    """Ways and clock of a measurement in which nothing runs; all take a second but those that are named here."""
    seen: dict = {"seconds": {}}

    def alternating(sides, repeats, clock=time.perf_counter, rest=0.0):
        seen.update(ways={str(way) for way in sides}, repeats=repeats, clock=clock, rest=rest)
        return {way: [seen["seconds"].get(str(way), 1.0)] * repeats for way in sides}

    monkeypatch.setattr(autotune, "alternating", alternating)
    monkeypatch.setattr(autotune, "failing", lambda calls, device: {})
    monkeypatch.setattr(native, "Native", Compiled)
    return seen


ONE_BY_ONE = {
    "looped, channels-last",
    "looped",
    "looped, own convolutions",
    "native, channels-last",
    "native, channels-last, direct sums",
}


@pytest.mark.parametrize(
    ("changes", "width", "packed"),
    [
        ({}, 1, set()),
        ({"workers": 2}, 1, set()),  # whose gradients are one sum
        ({}, 2, {"vectorised, channels-last, 2 runs", "vectorised, 2 runs"}),
        ({"workers": 2, "algorithm": {"name": "crossbow"}}, 1, {"vectorised, channels-last", "vectorised"}),
        (
            {"workers": 2, "algorithm": {"name": "crossbow"}},
            2,
            {"vectorised, channels-last, 2 runs", "vectorised, 2 runs"},
        ),
    ],
)
def test_what_is_timed_depends_on_the_points_of_a_turn(timed, changes, width, packed):
    spec = digits(0, **changes)
    found = measure_training(spec, new(spec), width)
    assert timed["ways"] == ONE_BY_ONE | packed
    assert found["refused"].get("vectorised") == (None if packed else "there is one point only")
    assert found["refused"]["captured"]


@pytest.mark.parametrize(
    ("way", "seconds", "chosen"),
    [
        ("vectorised, 2 runs", 0.5, ("vectorised", False, True, 2)),
        ("looped, own convolutions", 0.5, ("looped", False, False, 1)),
        ("looped", 0.975, ("looped", False, True, 1)),  # more than a fiftieth, each time
        ("looped", 0.985, ("looped", True, True, 1)),
    ],
)
def test_the_fastest_way_is_chosen_and_told_by_how_much(timed, way, seconds, chosen):
    timed["seconds"][way] = seconds
    spec = digits(0)
    found = measure_training(spec, new(spec), 2)
    assert tuple(found[name] for name in ("path", "channels_last", "onednn", "width")) == chosen
    assert found["measured"][way] == pytest.approx(1 / seconds)
    assert found["measured"][str(DEFAULT)] == 1.0
    assert found["reason"] == "measured"
    assert "build" not in found


def chosen(tmp_path, spec, *, seconds=1e6, width=3, slot=2, brings=()):
    """What is decided where a measurement would bring these changes; how often it was made."""
    made = []
    kind = Experiment(
        lambda: None,
        seconds=lambda spec: seconds,
        measure=lambda: lambda spec, execution, width: made.append(width) or dict(brings),
    )
    return decide(tmp_path, kind, spec, new(spec), width=width, slot=slot), len(made)


@pytest.mark.parametrize(
    ("seconds", "width", "measured"), [(10.0, 1, 1), (9.9, 1, 0), (4.0, 3, 1), (3.0, 3, 0), (60.0, 3, 1)]
)
def test_runs_of_ten_seconds_in_all_are_worth_a_measurement(tmp_path, seconds, width, measured):
    execution, made = chosen(tmp_path, digits(0), seconds=seconds, width=width)
    assert made == measured
    assert execution.get("reason", "too short to measure") == "too short to measure"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({}, {"workers": 1}, True),
        ({}, {"rate": 0.5, "updates": 7}, True),
        ({}, {"workers": 2}, False),
        ({}, {"algorithm": {"name": "isgd"}}, False),
        ({"algorithm": {"name": "rudra", "n": 1}}, {"algorithm": {"name": "rudra", "n": 2}}, True),
        (
            {"server": {}, "algorithm": {"name": "rudra", "n": 1}},
            {"server": {}, "algorithm": {"name": "rudra", "n": 2}},
            False,
        ),
        (
            {"server": {}, "algorithm": {"name": "rudra"}},
            {"server": {}, "algorithm": {"name": "rudra", "n": 0}},
            True,
        ),
    ],
)
def test_runs_of_one_kind_are_measured_once(tmp_path, one, other, alike):
    """Of a server's settings only the share of its learners that it takes at a time makes another kind."""
    for changes in (one, other):
        chosen(tmp_path, digits(0, **changes))
    assert len(list((tmp_path / "choices").iterdir())) == (1 if alike else 2)
