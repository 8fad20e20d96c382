"""Sides take turns, and hopeless ones are left out."""

from __future__ import annotations

from collections import namedtuple

import pytest

from benchmarks.measuring import Alternation, Side, hopeless, stolen_percent, timed


def scripted(seconds: dict[str, float]):
    """A timer that notes whom it times, each side taking a fixed time per update."""
    calls: list[tuple[str, int]] = []
    names = {}

    def timer(side: Side, updates: int) -> tuple[float, float | None]:
        name = names[id(side)]
        calls.append((name, updates))
        return seconds[name], seconds[name] / 2 if side.threads == 1 else None

    sides = {name: Side(lambda updates: None, threads=2 if "2" in name else 1) for name in seconds}
    names.update({id(side): name for name, side in sides.items()})
    return sides, timer, calls


def test_every_round_times_all_sides_and_begins_with_another():
    sides, timer, calls = scripted({"ours": 1.0, "plain": 2.0, "plain 2": 3.0})
    turns = Alternation(sides, timer)
    turns.updates = 7
    for _ in range(4):
        turns.round()
    rounds = [[name for name, _ in calls[i : i + 3]] for i in range(0, 12, 3)]
    assert rounds == [
        ["ours", "plain", "plain 2"],
        ["plain", "plain 2", "ours"],
        ["plain 2", "ours", "plain"],
        ["ours", "plain", "plain 2"],
    ]
    assert {updates for _, updates in calls} == {7}
    made = turns.samples()
    assert made["ours"] == {"seconds": [1.0] * 4, "processor": [0.5] * 4, "threads": 1}
    assert made["plain 2"] == {"seconds": [3.0] * 4, "processor": None, "threads": 2}


def test_warming_up_leaves_hopeless_sides_out_after_one_block_and_fills_a_sample():
    sides, timer, calls = scripted(
        {"ours": 0.004, "plain, 1 thread": 0.005, "plain fused, 1 thread": 2.5, "plain foreach, 1 thread": 30.0}
    )
    turns = Alternation(sides, timer)
    gone = turns.warm(3, 0.02, hopeless)
    assert sorted(gone) == ["plain foreach, 1 thread", "plain fused, 1 thread"]
    assert [name for name, _ in calls].count("plain foreach, 1 thread") == 1
    assert [name for name, _ in calls].count("plain fused, 1 thread") == 2
    assert turns.updates == 6  # whole blocks of 3 that fill 20 ms at 4 ms each
    turns.round()
    assert set(turns.samples()) == {"ours", "plain, 1 thread"}


def test_only_what_takes_seconds_is_left_out_and_never_the_best_of_its_kind():
    """The strongest loop of one thread stays beside that of two, however much slower it is."""
    seconds = {"ours": 0.1, "plain, 1 thread": 1.9, "plain fused, 1 thread": 1.0, "plain, 2 threads": 0.2}
    assert hopeless(seconds) == {}
    slow = {name: 30 * taken for name, taken in seconds.items()}
    slow |= {"one batch of 120 plain fused, 1 thread": 20.0, "2 processes of plain fused": 99.0, "jax im2col": 80.0}
    slow |= {"jax im2col, 1 thread": 90.0, "jax conv, 1 thread": 95.0, "2 processes of jax im2col": 70.0}
    slow |= {"compiled channels-last, 1 thread": 5.0, "compiled, 1 thread": 4.0, "ours, 2 threads": 7.0}
    assert set(hopeless(slow)) == {
        *("plain, 1 thread", "plain fused, 1 thread", "compiled channels-last, 1 thread"),
        *("jax im2col", "jax conv, 1 thread"),
    }
    assert (
        hopeless(slow)["plain, 1 thread"]["not_available"]
        == "57 s an update when warmed up; the fastest of its kind takes 20 s"
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_a_side_runs_with_its_own_number_of_threads(threads):
    import torch

    seen = []
    before = torch.get_num_threads()
    try:
        timed(Side(lambda updates: seen.append(torch.get_num_threads()), threads, in_process=threads), 1)
    finally:
        torch.set_num_threads(before)
    assert seen == [threads]


def test_time_taken_by_other_machines_is_a_share_of_what_passed():
    Times = namedtuple("Times", "user idle steal")
    before, after = Times(10.0, 80.0, 10.0), Times(12.0, 84.0, 14.0)
    assert stolen_percent(before, after) == pytest.approx(40.0)
    assert stolen_percent(after, after) == 0.0, "no time has passed"
