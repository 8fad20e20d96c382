"""The auto-tuner with a clock and a set of learners that are scripted."""

from __future__ import annotations

import random

import pytest

from suite.model_averaging.tuner import tune


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


def test_never_settling_is_an_error():
    learners = Scripted(lambda k: 2.0**k)
    with pytest.raises(ValueError, match="has not settled after 1000 readings"):
        tune(learners, learners.measure)
