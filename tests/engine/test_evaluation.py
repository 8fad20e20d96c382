"""Tests of several models at once, and tests cut short."""

from __future__ import annotations

import pytest
import torch
from engine_cases import bound, points, problem

from suite.evaluation import below, scores


@pytest.mark.parametrize("name", ["digits_lenet", "tiny_bn", "crossbow_lenet"])
@pytest.mark.parametrize("path", ["looped", "vectorised"])
def test_scores_of_several_models_are_those_of_each(name, path):
    case = problem(name, examples=20)
    x, rows = points(case, 3), case.b0().repeat(3, 1)
    if case.q:
        rows[1] *= 2  # statistics of a model's own
    losses, errors = scores(case, x, rows, case.inputs, case.targets, path=path, chunk=8)
    for i in range(3):
        loss, error = case.evaluate(x[i], rows[i], case.inputs, case.targets, chunk=8)
        assert abs(losses[i].item() - loss) <= bound(torch.tensor(loss, dtype=torch.float64), case.d)
        assert errors[i].item() == error
    assert case.flat.module.training
    assert torch.equal(case.flat.buffers, case.b0())


@pytest.mark.parametrize("metric", ["loss", "error"])
def test_a_test_cut_short_gives_the_answer_of_the_whole(metric):
    case = problem("digits_lenet", examples=40)
    x = points(case, 1)[0]
    loss, error = case.evaluate(x, case.b0(), case.inputs, case.targets)
    value = loss if metric == "loss" else error
    for factor in (0.1, 0.5, 0.99, 1.01, 2.0):
        reading = below(case, x, case.b0(), case.inputs, case.targets, factor * value, metric=metric, chunk=4)
        assert reading.below == (factor > 1)
        assert reading.value <= value * (1 + 1e-12)
        assert (reading.examples < 40) == (factor < 0.9)
        if reading.below:
            assert reading.value == pytest.approx(value, rel=1e-12)
    at = below(case, x, case.b0(), case.inputs, case.targets, 0.0, metric=metric, chunk=4)
    assert not at.below
    assert at.examples == 4


def test_a_loss_that_is_no_number_is_not_below_anything():
    case = problem("digits_lenet")
    reading = below(case, case.flat.point() * torch.nan, case.b0(), case.inputs, case.targets, 1e9, chunk=4)
    assert not reading.below
    assert reading.examples == 4


def test_wrong_questions_are_refused():
    case = problem("digits_lenet")
    x, rows = points(case, 1), case.b0()[None]
    none = case.inputs[:0], case.targets[:0]
    with pytest.raises(ValueError, match="looped or vectorised, not 'captured'"):
        scores(case, x, rows, case.inputs, case.targets, path="captured")
    with pytest.raises(ValueError, match="at least one image"):
        scores(case, x, rows, *none)
    with pytest.raises(ValueError, match="at least one image"):
        below(case, x[0], rows[0], *none, 1.0)
    with pytest.raises(ValueError, match="one of \\('loss', 'error'\\), not 'top5'"):
        below(case, x[0], rows[0], case.inputs, case.targets, 1.0, metric="top5")
