"""Curves of a run under way: which updates are kept, and one loss that is no number among many that are."""

from __future__ import annotations

import math

import pytest
import torch

from suite.training.curves import CurveRecorder


def recorded(losses: list[float], every: int = 1) -> CurveRecorder:
    recorder = CurveRecorder(every)
    for update, loss in enumerate(losses):
        recorder.add(update, {"loss": torch.tensor(loss), "twice": torch.tensor(2 * loss)})
    return recorder


def continued(recorder: CurveRecorder) -> CurveRecorder:
    """Another that takes up what a checkpoint of this one holds."""
    again = CurveRecorder(recorder.every)
    again.restore(recorder.to_plain(), recorder.tensors())
    return again


def test_every_update_is_kept_or_every_third_from_the_first_on():
    assert all(map(CurveRecorder().wants, range(5)))
    recorder = recorded([0.5 * update for update in range(8)], every=3)
    recorder.settle()
    assert recorder.updates == {"update": [0, 3, 6], "loss": [0.0, 1.5, 3.0], "twice": [0.0, 3.0, 6.0]}
    assert continued(recorder).updates == recorder.updates


@pytest.mark.parametrize("losses", [[1.0, math.nan, 2.0], [math.inf, 1.0]], ids=str)
def test_one_loss_of_an_update_that_is_no_number_is_noticed_when_rows_are_settled_and_after_a_checkpoint(losses):
    recorder = recorded(losses)
    assert recorder.finite, "nothing is read before"
    recorder.settle()
    assert not recorder.finite
    recorder.add(9, {"loss": torch.tensor(1.0), "twice": torch.tensor(2.0)})
    recorder.settle()
    assert not recorder.finite, "it stays so"
    assert not continued(recorder).finite


def test_so_is_one_of_a_test():
    recorder = recorded([1.0, 2.0])
    recorder.evaluate(update=0, test_loss=1.0, test_error=math.nan)
    recorder.settle()
    assert recorder.finite, "an error is no loss"
    assert continued(recorder).finite
    recorder.evaluate(update=1, test_loss=1.0, test_error=0.5, train_loss=math.inf)
    recorder.evaluate(update=2, test_loss=1.0, test_error=0.5, train_loss=1.0)
    assert not recorder.finite
    assert not continued(recorder).finite
