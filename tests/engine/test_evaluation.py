"""Tests of a model, whole and cut short."""

from __future__ import annotations

import math

import pytest
import torch
from engine_cases import points, problem

from suite.training.evaluation import WorstFirst, read, score


def test_a_test_cut_short_gives_the_answer_of_the_whole():
    case = problem("digits_lenet", examples=40)
    x = points(case, 1)[0]
    value, _ = score(case, x, case.b0(), case.inputs, case.targets)
    inputs = case.transform(case.inputs)
    for factor in (0.1, 0.5, 0.99, 1.01, 2.0):
        reading = read(case, x, case.b0(), factor * value, inputs, case.targets, chunk=4)
        below = not reading.cut and reading.loss < factor * value
        assert below == (factor > 1)
        assert reading.loss <= value * (1 + 1e-12)
        assert (reading.examples < 40) == (factor < 0.9)
        if not reading.cut:
            assert reading.loss == pytest.approx(value, rel=1e-12)
    at = read(case, x, case.b0(), 0.0, inputs, case.targets, chunk=4)
    assert at.cut
    assert at.examples < 40


def test_a_loss_that_is_no_number_is_not_below_anything():
    case = problem("digits_lenet")
    inputs = case.transform(case.inputs)
    reading = read(case, case.flat.point() * torch.nan, case.b0(), 1e9, inputs, case.targets, chunk=4)
    assert (reading.loss, reading.cut, reading.examples) == (math.inf, True, 4)


def test_a_test_reads_pictures_and_weights_channels_last():
    case = problem("tiny_bn", examples=4, channels_last=False)
    last = lambda tensor: tensor.is_contiguous(memory_format=torch.channels_last)
    seen = []
    case.flat.module.conv1.register_forward_pre_hook(lambda layer, given: seen.extend([*given, layer.weight.data]))
    score(case, case.flat.point(), case.b0(), case.inputs, case.targets)
    assert list(map(last, [*seen, case.flat.module.conv1.weight])) == [True, True, False]


def told(losses):
    """A sample whose losses at a point are that multiple of these; the examples asked for are noted."""
    asked = []

    def at(point, inputs, targets):
        asked.append(inputs.tolist())
        return point * torch.tensor(losses, dtype=torch.float64)[inputs]

    return WorstFirst(at, torch.arange(len(losses)), torch.zeros(len(losses)), 2), asked


def test_the_examples_that_were_worst_are_looked_at_first_and_decide_soonest():
    sample, asked = told([1.0, 2.0, 9.0, 3.0, 5.0])
    assert sample.read(1.0, None, 100.0) == (4.0, False, 5)
    assert asked == [[0, 1], [2, 3], [4]]
    asked.clear()
    assert sample.read(2.0, None, 5.0) == (2 * 14 / 5, True, 2)  # 18 + 10 exceed 25
    assert sample.read(0.5, None, 2.0) == (2.0, False, 5)  # at the threshold: never certain to lie above it
    assert asked == [[2, 4], [2, 4], [3, 1], [0]]


def test_what_was_not_looked_at_keeps_its_loss_and_equals_their_order():
    sample, asked = told([1.0, 1.0, 9.0, 1.0])
    sample.read(1.0, None, 100.0)
    sample.read(0.1, None, 0.2)  # the worst two, now 0.9 and 0.1, are enough
    assert sample.last.tolist() == pytest.approx([0.1, 1.0, 0.9, 1.0])
    asked.clear()
    sample.read(1.0, None, 100.0)
    assert asked == [[1, 3], [2, 0]]


def test_a_loss_that_is_no_number_is_infinite():
    sample, _ = told([1.0, math.nan, 1.0, 1.0])
    assert sample.read(1.0, None, 5.0) == (math.inf, True, 2)


@pytest.mark.parametrize("channels_last", [True, False])
def test_a_test_leaves_the_network_as_it_was(channels_last):
    """Also where weights of convolutions were copied into the layout that tests prefer."""
    case = problem("tiny_bn", channels_last=channels_last)
    flat = case.flat
    flat.load(x := points(case, 2)[1])
    places, statistics = [p.data_ptr() for p in flat.parameters], flat.buffers.clone()
    with pytest.raises(RuntimeError):
        score(case, x, case.b0(), case.inputs[:, :, :1], case.targets)  # pictures too small for the network
    score(case, points(case, 1)[0], case.b0(), case.inputs, case.targets)
    assert [p.data_ptr() for p in flat.parameters] == places
    assert torch.equal(flat.buffers, statistics)
    assert flat.module.training
    flat.load(x)
    for name, parameter in flat.module.named_parameters():
        assert torch.equal(parameter, flat.named(x)[name])


def test_wrong_questions_are_refused():
    case = problem("digits_lenet")
    x, none = case.flat.point(), (case.inputs[:0], case.targets[:0])
    with pytest.raises(ValueError, match="at least one image"):
        score(case, x, case.b0(), *none)
