"""An execution is chosen by measurement, once for each kind of run and store, and said with its reason."""

from __future__ import annotations

import json
from itertools import repeat
from types import SimpleNamespace

import pytest
import torch
from engine_cases import digits

from suite.experiment import Context, Experiment, OutOfTime
from suite.runner import autotune as choices
from suite.runner.autotune import alternating, decide, leave_if_late, measure_training, preferred, until
from suite.training.gradients import native
from suite.training.loop import train
from suite.training.numerics import apply, choose


def experiment(answers, seconds=1000.0):
    """An experiment whose measurements are given, with a list of those that were made."""
    made = []

    def measure(spec, execution):
        made.append(spec.seed)
        return next(answers)

    return Experiment(lambda: None, seconds=lambda spec: seconds, measure=lambda: measure), made


def new(spec):
    return choose(spec, "cpu", 1)


def test_the_first_measurement_of_a_kind_stands(tmp_path):
    slow, fast = {"path": "looped"}, {"path": "vectorised"}
    kind, made = experiment(iter([fast, slow, slow]))
    first = decide(tmp_path, kind, digits(0), new(digits(0)))
    second = decide(tmp_path, kind, digits(1, rate=0.5), new(digits(1)))
    assert made == [0]
    assert (first["path"], second["path"]) == ("vectorised", "vectorised")
    assert decide(tmp_path, kind, digits(1, batch=8), new(digits(1)))["path"] == "looped"
    assert made == [0, 1]


def test_another_process_that_was_first_is_believed(tmp_path):
    kind, _ = experiment(iter([{"path": "vectorised"}]))
    text = choices._kind(digits(0), new(digits(0)))
    decide(tmp_path, kind, digits(0), new(digits(0)))
    (path,) = (tmp_path / "choices").iterdir()
    assert choices._keep(path, text, new(digits(0)), {"path": "looped"}) == {"path": "vectorised"}


@pytest.mark.parametrize("content", ["{ cut of", "[]", "7", '{"changes": 7}', '{"changes": {"path": 7}}', "\udcff"])
def test_a_choice_that_leads_to_no_execution_is_measured_again_and_replaced(tmp_path, content):
    kind, made = experiment(iter([{"path": "vectorised"}, {"path": "looped"}]))
    decide(tmp_path, kind, digits(0), new(digits(0)))
    (path,) = (tmp_path / "choices").iterdir()
    path.write_text(content, errors="surrogateescape")
    for _ in range(2):
        assert decide(tmp_path, kind, digits(0), new(digits(0)))["path"] == "looped"
    assert len(made) == 2


@pytest.mark.parametrize(("seconds", "measured"), [(5.0, 1), (4.9, 0)])
def test_runs_of_five_seconds_are_worth_a_measurement(tmp_path, seconds, measured):
    kind, made = experiment(repeat({}), seconds)
    execution = decide(tmp_path, kind, digits(0), new(digits(0)))
    assert len(made) == measured
    assert execution.get("reason") == (None if measured else "too short to measure")


def test_named_paths_are_not_measured(tmp_path):
    kind, made = experiment(iter([]))
    for path in ("vectorised", "looped"):
        assert decide(tmp_path, kind, digits(0, path=path), new(digits(0, path=path)))["path"] == path
    captured = digits(0, path="captured")
    execution = decide(tmp_path, kind, captured, new(captured))
    assert execution["path"] == "looped"
    assert "needs CUDA" in execution["reason"]
    assert not made


@pytest.mark.usefixtures("hastily")
def test_a_measurement_times_what_can_run_and_says_what_cannot():
    spec = digits(0, batch=1, workers=2, algorithm={"name": "crossbow"})
    changes = measure_training(spec, new(spec))
    assert set(changes["measured"]) - {"native, channels-last"} == {
        "looped",
        "looped, channels-last",
        "looped, own convolutions",
        "vectorised",
        "vectorised, channels-last",
    }
    assert changes["measured"]["looped, channels-last"] == 1.0
    best = max(changes["measured"].values())
    chosen = choices.Candidate(*(changes[name] for name in choices.Candidate._fields if name != "direct"))
    if best > 1 / (1 - choices.MARGIN):
        assert changes["measured"][str(chosen)] == best
    if best < 1 / (1 - choices.STEADY):
        assert chosen == choices.DEFAULT
    assert set(changes["refused"]) == {"captured"} | (
        {"native"} if "native, channels-last" not in changes["measured"] else set()
    )
    json.dumps(changes)


class Compiled:
    """Stands for the native gradients of a problem, without a compiler."""

    def __init__(self, problem, build=None, direct=False):
        self.library = SimpleNamespace(build="direct" if direct else "a build", winograd=True)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> dict:
    """The ways of a measurement in which nothing runs; all take a second but those that are named here."""
    seen: dict = {"seconds": {}}

    def alternating(sides, repeats, *clock, **limits):
        seen["ways"] = {str(way) for way in sides}
        return {way: [seen["seconds"].get(str(way), 1.0)] * repeats for way in sides}

    monkeypatch.setattr(choices, "alternating", alternating)
    monkeypatch.setattr(choices, "failing", lambda calls: {})
    monkeypatch.setattr(native, "Native", Compiled)
    return seen


ONE_BY_ONE = {
    "looped, channels-last",
    "looped",
    "looped, own convolutions",
    "native, channels-last",
    "native, channels-last, direct sums",
}


AVERAGED = {"workers": 2, "algorithm": {"name": "crossbow"}}


@pytest.mark.parametrize(
    ("changes", "joint"),
    [
        ({}, set()),
        ({"workers": 2}, set()),  # whose gradients are one sum
        (AVERAGED, {"vectorised, channels-last", "vectorised"}),
    ],
)
def test_what_is_timed_depends_on_the_points_of_a_turn(timed, changes, joint):
    spec = digits(0, **changes)
    found = measure_training(spec, new(spec))
    assert timed["ways"] == ONE_BY_ONE | joint
    assert found["refused"].get("vectorised") == (None if joint else "there is one point only")
    assert found["refused"]["captured"]


def test_the_fastest_way_is_chosen_and_told_by_how_much(timed):
    timed["seconds"]["vectorised"] = 0.5
    found = measure_training(digits(0, **AVERAGED), new(digits(0)))
    assert (found["path"], found["channels_last"], found["onednn"]) == ("vectorised", False, True)
    assert found["measured"]["vectorised"] == pytest.approx(2.0)
    assert found["measured"][str(choices.DEFAULT)] == 1.0
    assert found["reason"] == "measured"
    assert "build" not in found


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
    kind, made = experiment(repeat({}))
    for spec in (digits(0, **one), digits(1, **other)):
        decide(tmp_path, kind, spec, new(spec))
    assert len(made) == (1 if alike else 2)


@pytest.mark.parametrize(
    ("others", "taken"),
    [
        ([0.94, 0.94, 0.94], True),
        ([0.97, 0.97, 0.97], True),  # little, but every time
        ([0.97, 0.97, 1.01], False),
        ([0.94, 0.94, 1.01], True),
        ([0.985, 0.985, 0.985], False),
        ([1.1, 1.1, 0.5], False),
    ],
)
def test_the_default_stands_unless_another_is_surely_faster(others, taken):
    other = choices.DEFAULT._replace(channels_last=False)
    seconds = {choices.DEFAULT: [1.0, 1.0, 1.0], other: others}
    chosen = preferred(seconds, choices.DEFAULT, choices.MARGIN, choices.STEADY)
    assert chosen == (other if taken else choices.DEFAULT)
    faster = {"slow": [0.5, 0.5, 9.0], "fast": [0.4, 0.4, 9.0]}
    assert preferred({choices.DEFAULT: [1.0] * 3, **faster}, choices.DEFAULT) == "fast"


def test_interleaved_calls_take_turns():
    order, now = [], [0.0]

    def call(name, seconds):
        def run():
            order.append(name)
            now[0] += next(seconds)

        return run

    calls = {"a": call("a", iter([9.0, 1.0, 1.0, 50.0])), "b": call("b", iter([9.0, 2.0, 3.0, 2.0]))}
    assert alternating(calls, 3, lambda: now[0]) == {"a": [1.0, 1.0, 50.0], "b": [2.0, 3.0, 2.0]}
    assert order == ["a", "b"] * 4
    assert alternating({"a": lambda: None}, 1, iter(range(10)).__next__) == {"a": [1]}
    with pytest.raises(ValueError, match="repeats=0 must be at least 1"):
        alternating({"a": lambda: None}, 0)


def test_a_side_that_takes_twice_as_long_and_longer_than_allowed_is_called_once():
    now, called = [0.0], []

    def taking(seconds):
        def run():
            called.append(seconds)
            now[0] += seconds

        return run

    calls = {name: taking(seconds) for name, seconds in {"best": 2.0, "near": 3.5, "slow": 4.5}.items()}
    found = alternating(calls, 2, lambda: now[0], long=3.0)
    assert found == {"best": [2.0, 2.0], "near": [3.5, 3.5], "slow": [4.5]}
    assert called.count(4.5) == 1
    assert preferred(found, "slow", 0.05, 0.02) == "best"
    assert alternating(calls, 2, lambda: now[0], long=5.0)["slow"] == [4.5, 4.5]


def test_a_measurement_ends_with_the_time_that_was_given():
    order = []
    with until(lambda: len(order) == 3), pytest.raises(OutOfTime):
        alternating({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert order == ["a", "b", "a"]
    assert len(alternating({"a": lambda: order.append("a")}, 3)["a"]) == 3
    with until(lambda: True):
        with until(lambda: False):
            leave_if_late()
        with pytest.raises(OutOfTime):
            leave_if_late()


def test_a_new_run_is_looped_strict_and_deterministic_and_its_threads_and_switches_are_torchs(tmp_path):
    execution = choose(digits(0), "cpu", 2)
    assert (execution["path"], execution["precision"]) == ("looped", "float32")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    try:
        apply(execution)
        assert torch.get_num_threads() == 2
        assert not torch.backends.cuda.matmul.allow_tf32
        assert not torch.backends.cudnn.allow_tf32
        assert torch.backends.cudnn.deterministic
        assert not torch.backends.cudnn.benchmark
        train(digits(0, updates=1), Context(tmp_path, choose(digits(0), "cpu", 1)))
        assert torch.get_num_threads() == 1, "a run applies what was recorded of it"
    finally:
        apply(choose(digits(0), "cpu", 1))


def test_what_fails_when_it_is_tried_is_refused_and_the_default_must_work():
    def out_of_memory():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate\nmuch")

    other = choices.DEFAULT._replace(path="captured")
    calls = {choices.DEFAULT: lambda: None, other: out_of_memory}
    assert choices.failing(calls) == {"captured, channels-last": "CUDA out of memory. Tried to allocate"}
    assert set(calls) == {choices.DEFAULT}
    with pytest.raises(torch.OutOfMemoryError):
        choices.failing({choices.DEFAULT: out_of_memory})
