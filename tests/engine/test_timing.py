"""Ways to do the same work, timed in turns: when a side settles first, when time is over, which one is taken."""

from __future__ import annotations

import pytest

from suite.experiment import OutOfTime
from suite.runner.autotune import alternating, leave_if_late, preferred, until


def test_time_is_over_within_the_block_alone():
    with until(lambda: True):
        with until(lambda: False):
            leave_if_late()
        with pytest.raises(OutOfTime):
            leave_if_late()
    leave_if_late()


def test_one_repeat_is_enough_and_none_is_refused():
    assert alternating({"a": lambda: None}, 1, iter(range(10)).__next__) == {"a": [1]}
    with pytest.raises(ValueError, match="repeats=0 must be at least 1"):
        alternating({"a": lambda: None}, 0)


def test_of_several_ways_the_fastest_is_taken():
    seconds = {"simple": [1.0, 1.0, 1.0], "slow": [0.5, 0.5, 9.0], "fast": [0.4, 0.4, 9.0]}
    assert preferred(seconds, "simple") == "fast"
