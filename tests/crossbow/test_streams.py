"""Learners on threads: what is recorded of their tasks, and how an error of one lets the others go."""

from __future__ import annotations

import pytest
import torch

from suite.model_averaging.learners import on_streams


def recorded(**options):
    options = {"alpha": 0.5, "momentum": 0.0, "lr": 0.1, **options}
    return on_streams(2, 3, torch.ones(2), lambda learner, w, batch: w, **options)[2]


def test_every_task_is_recorded_on_its_stream():
    tasks = recorded()
    found = {(t.kind, t.iteration, t.stream, t.learner, t.batch) for t in tasks}
    expected = {("global", i, "synchronisation 0", -1, -1) for i in range(3)}
    expected |= {("learn", i, f"learner {j}", j, 2 * i + j) for i in range(3) for j in range(2)}
    expected |= {("local", i, f"learner {j}", j, -1) for i in range(3) for j in range(2)}
    assert found == expected, "whoever does not ask for first come gets the batches in order"
    assert {t.device for t in tasks} == {0}


def test_learners_that_wait_for_a_broken_one_are_let_go():
    """The other is in its second iteration at most: there it needs the average of the first."""
    calls = []

    def gradient(learner, w, batch):
        calls.append(learner)
        if learner == 1:
            raise RuntimeError("no gradient today")
        return w

    with pytest.raises(RuntimeError, match="no gradient today"):
        on_streams(2, 50, torch.ones(2), gradient, alpha=0.5, momentum=0.0, lr=0.1)
    assert calls.count(1) == 1
    assert calls.count(0) <= 2
