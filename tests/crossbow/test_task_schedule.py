"""Tasks on streams: by hand, by dependency, and against a run on real threads."""

from __future__ import annotations

import pytest
from crossbow_worlds import assignment

from suite.model_averaging.task_schedule import Durations, idle_seconds, schedule


def test_two_learners_by_hand():
    """Learner 1's first task takes 3 s: its local task ends at 3.5, the global one at 4.5."""
    durations = Durations(lambda batch: 3.0 if batch == 1 else 1.0, local=0.5, overall=1.0)
    found = {(t.kind, t.iteration, t.learner): (t.start, t.end) for t in schedule(2, 1, 2, durations)}
    assert found["learn", 0, 0] == (0.0, 1.0)
    assert found["local", 0, 0] == (1.0, 1.5)
    assert found["local", 0, 1] == (3.0, 3.5)
    assert found["global", 0, -1] == (3.5, 4.5)
    assert found["learn", 1, 0] == (1.5, 2.5)
    assert found["local", 1, 0] == (4.5, 5.0), "it reads the average model of the iteration before"
    assert found["learn", 1, 1] == (3.5, 4.5), "alongside the global synchronisation"


def test_first_come_takes_the_next_batch_and_round_robin_waits():
    durations = Durations(lambda batch: 3.0 if batch == 0 else 1.0, local=0.0, overall=0.0)
    assert assignment(schedule(2, 1, 2, durations), 2) == [(0, 1), (3, 2)]
    fair = schedule(2, 1, 2, durations, "round-robin")
    assert assignment(fair, 2) == [(0, 1), (2, 3)]
    waiting = next(t for t in fair if t.kind == "learn" and t.batch == 3)
    assert waiting.start == 3.0, "learner 1 is free from 1.0 on and waits for learner 0"


@pytest.mark.parametrize("policy", ["first-come", "round-robin"])
@pytest.mark.parametrize(("devices", "learners"), [(1, 1), (2, 2), (3, 4)])
def test_dependencies_hold(policy, devices, learners):
    durations = Durations(lambda batch: 1 + (7 * batch % 5) / 3, local=0.2, overall=0.7)
    tasks = schedule(12, devices, learners, durations, policy)
    k = devices * learners
    by = {(t.kind, t.iteration, t.learner if t.learner >= 0 else t.device): t for t in tasks}
    assert len(tasks) == len(by) == 12 * (2 * k + devices)
    for (kind, i, j), task in by.items():
        if kind == "learn" and i:
            assert task.start >= by["local", i - 1, j].end
        if kind == "local":
            assert task.start >= by["learn", i, j].end
            assert not i or task.start >= by["global", i - 1, 0].end
            assert task.stream == by["learn", i, j].stream
        if kind == "global":
            assert task.start >= max(by["local", i, learner].end for learner in range(k))
    assert sorted(t.batch for t in tasks if t.kind == "learn") == list(range(12 * k))


def test_refuses_what_means_nothing():
    durations = Durations(lambda batch: 1.0, 0.0, 0.0)
    for arguments in ((0, 1, 1, durations), (1, 0, 1, durations), (1, 1, 1, durations, "random")):
        with pytest.raises(ValueError, match="policy"):
            schedule(*arguments)


def test_idle_seconds_by_hand():
    """Until 5.0 learner 0 has worked for 3.0 and learner 1 without a pause."""
    durations = Durations(lambda batch: 3.0 if batch == 1 else 1.0, local=0.5, overall=1.0)
    assert idle_seconds(schedule(2, 1, 2, durations)) == 2.0
