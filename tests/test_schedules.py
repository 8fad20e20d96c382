"""Turns in lockstep, and rates as a function of the turn."""

from __future__ import annotations

from functools import partial
from itertools import islice
from types import SimpleNamespace

import pytest
import torch

from suite.spec import RunSpec
from suite.training.loop import TrainingRun, rounds
from suite.training.schedules import shape_at


def test_at_a_turn_every_worker_brings_a_gradient_of_the_newest_weights():
    assert next(rounds(1)) == (0, ((0, 0, 0),))
    turns = list(islice(rounds(3, start=4), 2))
    assert [turn.t for turn in turns] == [4, 5]
    assert [[(e.worker, e.read, e.number) for e in turn.entries] for turn in turns] == [
        [(0, 4, 4), (1, 4, 4), (2, 4, 4)],
        [(0, 5, 5), (1, 5, 5), (2, 5, 5)],
    ]


def rate(turn: int, **settings: object) -> float:
    """That of a run that begins at a rate of 0.5."""
    on_device = partial(torch.tensor, dtype=torch.float64)
    run = SimpleNamespace(spec=RunSpec("train", {"rate": 0.5, **settings}), updates=100, on_device=on_device)
    return TrainingRun.rate(run, turn).item()


def test_a_rate_drops_at_its_turn_and_not_before():
    drops = ((10, 0.1), (20, 0.01))
    rates = {turn: rate(turn, drops=drops) for turn in (0, 9, 10, 19, 20, 99)}
    assert rates == pytest.approx({0: 0.5, 9: 0.5, 10: 0.05, 19: 0.05, 20: 0.005, 99: 0.005})
    assert rate(7) == 0.5


def test_a_schedule_grows_to_one_and_falls_along_half_a_cosine():
    schedule = {"warmup": 4, "cosine": 0.2}
    shape = [shape_at(schedule, 24, turn) for turn in (0, 3, 4, 14, 24)]
    assert shape == pytest.approx([0.25, 1.0, 1.0, 0.6, 0.2])
    assert [shape_at({"warmup": 2}, 9, turn) for turn in (0, 1, 8)] == [0.5, 1.0, 1.0]
    assert shape_at({}, 9, 0) == 1.0
    with pytest.raises(ValueError, match="unexpected keyword argument 'cosinus'; options are warmup"):
        shape_at({"cosinus": 0.0}, 9, 0)
