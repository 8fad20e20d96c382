"""The auto-tuner with a clock and a set of learners that are scripted."""

from __future__ import annotations

import random
import time

import pytest

from suite.model_averaging.tuner import choose_path, tune
from suite.runner.timing import alternating, preferred


class Scripted:
    """Learners whose throughput follows a curve; remembers every change."""

    def __init__(self, curve, noise: float = 0.0, start: int = 1):
        self.k, self.curve, self.noise, self.changes = start, curve, noise, []
        self.draw = random.Random(0)

    def resize(self, learners: int) -> None:
        self.changes.append(learners)
        self.k = learners

    def measure(self) -> float:
        return self.curve(self.k) * self.draw.gauss(1, self.noise)


def test_grows_to_the_peak_steps_back_once_and_holds():
    learners = Scripted(lambda k: 100.0 * min(k, 4))
    history = tune(learners, learners.measure)
    assert learners.changes == [2, 3, 4, 5, 4]
    assert [reading.learners for reading in history] == [1] * 5 + [2] * 5 + [3] * 5 + [4] * 5 + [5] * 5
    assert history[-1].asked == learners.k == 4


def test_memory_limits_the_count_and_a_useless_learner_is_taken_back():
    limited, useless = Scripted(lambda k: 100.0 * k), Scripted(lambda k: 100.0)
    tune(limited, limited.measure, most=3)
    tune(useless, useless.measure)
    assert limited.k == 3
    assert useless.k == 1


def test_starts_from_the_learners_that_are_there():
    learners = Scripted(lambda k: 100.0 * min(k, 6), start=3)
    assert tune(learners, learners.measure)[0].learners == 3
    assert learners.k == 6


def test_never_settling_is_an_error():
    learners = Scripted(lambda k: 2.0**k)
    with pytest.raises(ValueError, match="has not settled after 20 readings"):
        tune(learners, learners.measure, limit=20)


def test_sides_are_measured_in_turns_with_the_first_left_out():
    order = []
    found = alternating({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert order == ["a", "b"] * 4
    assert {name: len(row) for name, row in found.items()} == {"a": 3, "b": 3}
    with pytest.raises(ValueError, match="repeats=0"):
        alternating({}, 0)


@pytest.mark.parametrize(("other", "chosen"), [(0.90, "vectorised"), (0.96, "looped"), (1.5, "looped")])
def test_the_simple_path_stays_within_the_margin(other, chosen):
    assert preferred({"looped": [1.0, 1.0, 9.0], "vectorised": [other] * 3}, "looped", margin=0.05) == chosen
    with pytest.raises(ValueError, match="'captured' was not measured"):
        preferred({"looped": [1.0]}, "captured")


def test_with_several_devices_all_gain_a_learner_together():
    learners = Scripted(lambda k: 100.0 * min(k, 6), start=2)
    history = tune(learners, learners.measure, devices=2)
    assert learners.changes == [4, 6, 8, 6]
    assert [reading.learners for reading in history] == [1] * 5 + [2] * 5 + [3] * 5 + [4] * 5
    assert history[-1].asked == 3


@pytest.mark.parametrize(("captured", "chosen"), [(0.5, "captured"), (0.97, "looped")])
def test_the_fastest_path_is_left_in_place(captured, chosen):
    class Switched:
        gradients = "nothing yet"

    learners, used = Switched(), []

    def clock(sides, repeats):
        """Times of a machine on which a captured graph takes so much of the simple path's time."""
        for side in sides.values():
            side()
        return {"looped": [1.0] * repeats, "captured": [captured] * repeats}

    ready = {"looped": "one by one", "captured": "a graph"}
    path, seconds = choose_path(learners, ready, lambda: used.append(learners.gradients), timed=clock, margin=0.05)
    assert used == ["one by one", "a graph"]
    assert path == chosen
    assert learners.gradients == ready[chosen]
    assert seconds == {"captured": captured, "looped": 1.0}[chosen]


@pytest.mark.parametrize(("gain", "held"), [(0.12, 2), (0.08, 1)])
def test_a_learner_stays_that_gains_a_tenth(gain, held):
    learners = Scripted(lambda k: 100.0 if k == 1 else 100.0 * (1 + gain))
    tune(learners, learners.measure)
    assert learners.k == held


def test_a_thousand_readings_are_the_most_unless_told():
    taken = []
    with pytest.raises(ValueError, match="has not settled after 1000 readings"):
        tune(Scripted(lambda k: 1.0), lambda: taken.append(0) or 2.0 ** len(taken))
    assert len(taken) == 1_000


def test_readings_say_what_a_change_took_and_nothing_where_there_was_none():
    learners, began = Scripted(lambda k: 100.0 * min(k, 2)), time.perf_counter()
    history = tune(learners, learners.measure)
    spent = time.perf_counter() - began
    assert [reading.seconds == 0.0 for reading in history if reading.asked == reading.learners] == [True] * 12
    changes = [reading.seconds for reading in history if reading.asked != reading.learners]
    assert len(changes) == 3
    assert all(0.0 < seconds <= spent for seconds in changes)


@pytest.mark.parametrize(("captured", "chosen"), [(0.94, "captured"), (0.96, "looped")])
def test_paths_are_measured_three_times_and_another_must_take_a_twentieth_less(captured, chosen):
    class Switched:
        gradients = None

    def clock(sides, repeats):
        assert repeats == 3
        return {"looped": [1.0] * repeats, "captured": [captured] * repeats}

    assert choose_path(Switched(), {"looped": 1, "captured": 2}, lambda: None, timed=clock)[0] == chosen
