"""A network's parameters and buffers as vectors: their order, multipliers, and a point read where it lies."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from suite.training.flat import FlatModule, aligned, misaligned
from suite.training.problem import Classification


def test_parameters_lie_as_torch_flattens_them_unless_pictures_are_to_lie_channels_last():
    convolution = nn.Conv2d(3, 4, 2)
    expected = parameters_to_vector(convolution.parameters()).detach().clone()
    assert torch.equal(FlatModule(convolution).point(), expected)
    last = FlatModule(convolution, channels_last=True).point()
    assert torch.equal(last[:48].view(4, 2, 2, 3).permute(0, 3, 1, 2).reshape(-1), expected[:48])
    assert not torch.equal(last, expected)


def test_a_parameter_without_a_multiplier_has_one():
    flat = FlatModule(nn.Linear(2, 3))
    scale = flat.scale({"weight": 2.0})
    assert scale is not None
    assert scale.tolist() == [2.0] * 6 + [1.0] * 3
    assert flat.scale({}) is flat.scale({"weight": 1.0, "bias": 1.0}) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_borrowed_point_comes_with_its_statistics_or_leaves_the_modules_own(dtype: torch.dtype):
    """Of 65,280 parameters in four tensors, so many that the point is read where it lies."""
    flat = FlatModule(nn.Sequential(nn.Linear(252, 256), nn.BatchNorm1d(256)).to(dtype))
    point, statistics = flat.point(), torch.linspace(1, 2, flat.q, dtype=dtype)
    own = flat.buffers.clone()
    flat.borrow(point)
    assert flat.parameters[0].data_ptr() == point.data_ptr() != flat.x.data_ptr()
    assert torch.equal(flat.buffers, own)
    flat.borrow(point, statistics)
    assert torch.equal(flat.buffers, statistics)
    assert torch.equal(dict(flat.module.named_buffers())["1.running_mean"], statistics[:256])
    shifted = torch.cat([point[:1], point])[1:]  # off its place in a cache line, which turns a sum's last bits
    for other in (point.half(), point.repeat_interleave(2)[::2], shifted):  # of another type, and with gaps: copied
        flat.borrow(other)
        assert flat.parameters[0].data_ptr() == flat.x.data_ptr()


def test_a_part_is_copied_only_where_a_gpu_could_not_read_it():
    """Kernels of 16 bytes a load want the address to be a multiple of them."""
    vector = torch.arange(64.0)
    for start, copied in ((0, False), (1, True), (3, True), (4, False), (16, False), (18, True)):
        part = vector[start : start + 5]
        assert misaligned(part) is copied
        assert torch.equal(aligned(part), part)
        assert (aligned(part).data_ptr() != part.data_ptr()) is copied


def test_examples_that_are_no_pictures_lie_as_they_are():
    """Rows of a table, for a network whose pictures would lie channels-last."""
    flat = FlatModule(nn.Linear(3, 2), channels_last=True)
    table = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    inputs, targets = Classification(flat, table, torch.tensor([0, 1]), torch.clone).fetch(torch.tensor([1]))
    assert (inputs.tolist(), targets.tolist()) == ([[4.0, 5.0, 6.0]], [1])
