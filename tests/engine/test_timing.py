"""Ways to do the same work, timed in turns: when a side settles first, when time is over, which one is taken."""

from __future__ import annotations

import pytest

from suite.experiment import OutOfTime
from suite.runner.timing import alternating, leave_if_late, preferred, until


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


@pytest.mark.parametrize(("rests", "calls"), [(9.5, 4), (10.5, 3)])
def test_a_side_that_is_done_within_ten_rests_settles_first(rests: float, calls: int):
    """The first of two turns, which nothing came before, settles in either case."""
    now, rest, called = [0.0], 1e-6, []

    def side() -> None:
        called.append("side")
        now[0] += rests * rest

    alternating({"side": side}, 1, lambda: now[0], rest=rest)
    assert len(called) == calls


@pytest.mark.parametrize(
    ("others", "steady", "taken"),
    [
        ([0.94] * 3, None, True),
        ([0.96] * 3, None, False),
        ([0.97, 0.97, 0.99], 0.02, True),
        ([0.97, 0.97, 1.0], 0.02, False),
        ([0.985] * 3, 0.02, False),
        ([1.01] * 3, 0.02, False),
    ],
)
def test_a_margin_is_a_twentieth_unless_another_is_given_for_what_was_faster_each_time(others, steady, taken):
    found = preferred({"simple": [1.0] * 3, "other": others}, "simple", steady=steady)
    assert found == ("other" if taken else "simple")


def test_of_several_ways_the_fastest_is_taken():
    seconds = {"simple": [1.0, 1.0, 1.0], "slow": [0.5, 0.5, 9.0], "fast": [0.4, 0.4, 9.0]}
    assert preferred(seconds, "simple") == "fast"
