"""What a measurement of executions covers, by which clock it is taken, and what is made of it."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
import torch
from engine_cases import digits

from suite.experiment import Experiment, OutOfTime
from suite.runner import autotune
from suite.runner.autotune import DEFAULT, decide, failing, finished, measure_training
from suite.runner.timing import until
from suite.training import build
from suite.training.gradients import native
from suite.training.numerics import choose


def new(spec, threads=1):
    return choose(spec, "cpu", threads)


class Seen(Exception):
    """The pictures that a measurement asks for."""


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(model, count, *_):
        raise Seen(count)

    monkeypatch.setattr(build, "random_classification", made)


@pytest.mark.parametrize(("changes", "count"), [({}, 8), ({"workers": 3}, 24), ({"batch": 5, "workers": 2}, 20)])
def test_updates_are_timed_on_two_batches_of_all_workers(pictures, changes, count):
    spec = digits(0, **changes)
    with pytest.raises(Seen, match=f"^{count}$"):
        measure_training(spec, new(spec), 1)


def test_a_measurement_is_taken_with_the_threads_of_the_run(pictures):
    spec = digits(0)
    try:
        for threads in (2, 1):
            with pytest.raises(Seen):
                measure_training(spec, new(spec, threads), 1)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(1)


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
        (
            {"workers": 2, "algorithm": {"name": "crossbow"}},
            1,
            {"vectorised, channels-last", "vectorised"},
        ),
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


def test_a_network_that_draws_masks_is_timed_run_by_run(timed):
    spec = digits(0, model={"name": "crossbow_lenet"})
    found = measure_training(spec, new(spec), 2)
    assert found["refused"]["vectorised"] == "dropout's masks are drawn run by run"
    assert not any("vectorised" in way for way in timed["ways"])


@pytest.mark.parametrize(("threads", "clock", "rests"), [(1, time.thread_time, False), (2, time.perf_counter, True)])
def test_one_thread_is_timed_by_its_processor_and_several_by_the_clock_once_they_sleep(timed, threads, clock, rests):
    spec = digits(0)
    try:
        measure_training(spec, new(spec, threads), 1)
        assert (timed["clock"], timed["rest"] > 0, timed["repeats"]) == (clock, rests, 7)
    finally:
        torch.set_num_threads(1)


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


@pytest.mark.parametrize(("form", "build"), [("", "a build"), (", direct sums", "direct")])
def test_a_native_way_is_chosen_with_the_build_that_was_timed(timed, form, build):
    timed["seconds"][f"native, channels-last{form}"] = 0.5
    spec = digits(0)
    found = measure_training(spec, new(spec), 1)
    assert (found["path"], found["channels_last"], found["onednn"], found["width"]) == ("native", True, True, 1)
    assert found["build"] == build


def test_where_nothing_compiles_that_is_told(timed, monkeypatch: pytest.MonkeyPatch):
    def refused(problem):
        raise native.NativeError("no compiler here")

    monkeypatch.setattr(native, "Native", refused)
    spec = digits(0)
    assert measure_training(spec, new(spec), 1)["refused"]["native"] == "no compiler here"
    assert "native, channels-last" not in timed["ways"]


def test_own_convolutions_are_timed_without_onednn_and_all_others_with_it(timed, monkeypatch):
    seen: dict[str, set[bool]] = {}
    forward = torch.nn.Conv2d._conv_forward
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", True)

    def noted(self, *given):
        used.add(torch.backends.mkldnn.enabled)
        return forward(self, *given)

    def tried(calls, device):
        for way, call in calls.items():
            if way.path == "native":
                continue
            used.clear()
            call()
            seen[str(way)] = set(used)
        return {}

    used: set[bool] = set()
    monkeypatch.setattr(torch.nn.Conv2d, "_conv_forward", noted)
    monkeypatch.setattr(autotune, "failing", tried)
    spec = digits(0, batch=1)
    measure_training(spec, new(spec), 1)
    assert seen.pop("looped, own convolutions") == {False}
    assert seen == {"looped": {True}, "looped, channels-last": {True}}


def test_what_is_tried_ends_with_the_time_that_was_given():
    tried = []
    calls = {
        DEFAULT: lambda: tried.append("default"),
        DEFAULT._replace(path="captured"): lambda: tried.append("other"),
    }
    with until(lambda: bool(tried)), pytest.raises(OutOfTime):
        failing(calls, "cpu")
    assert tried == ["default"]


def test_a_call_on_a_gpu_is_finished_when_its_work_is(monkeypatch: pytest.MonkeyPatch):
    order = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: order.append("done"))
    finished(lambda: order.append("begun"), "cuda")()
    assert order == ["begun", "done"]
    finished(lambda: order.append("on the CPU"), "cpu")()
    assert order[2:] == ["on the CPU"]


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


@pytest.mark.parametrize(("changes", "slot"), [({}, 0), ({"width": 1}, 0), ({"width": 2}, 2), ({"width": 3}, 2)])
def test_a_run_has_a_slot_where_it_shares_its_steps(tmp_path, changes, slot):
    assert chosen(tmp_path, digits(0), brings=changes)[0]["slot"] == slot


def test_a_path_that_the_settings_name_packs_two_runs(tmp_path):
    execution, _ = chosen(tmp_path, digits(0, path="vectorised"), width=2, slot=1)
    assert (execution["width"], execution["slot"], execution["reason"]) == (2, 1, "the settings name it")


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
