"""Layers against literal twins of Caffe's loops."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from suite.models.initialisers import (
    Constant,
    FanInUniform,
    Gaussian,
    He,
    Initialiser,
    Uniform,
    Xavier,
    fans,
    initialise,
)
from suite.models.layers import (
    AcrossChannelLRN,
    BatchNorm,
    Linear,
    ResidualBlock,
    WithinChannelLRN,
    ZeroPaddedShortcut,
    caffe_average_pool,
    caffe_max_pool,
)

GEOMETRIES = [
    (size, kernel, stride, padding)
    for size in (4, 5, 7, 8, 13, 14)
    for kernel, stride, padding in [(2, 2, 0), (3, 2, 0), (3, 1, 1), (3, 2, 1), (5, 3, 0), (3, 3, 1), (2, 2, 1)]
    if size >= kernel
]


def caffe_pool(x: np.ndarray, kernel: int, stride: int, padding: int, average: bool) -> np.ndarray:
    """pooling_layer.cpp on one square channel ``[H, H]``, loop by loop."""
    size = x.shape[0]
    pooled = math.ceil((size + 2 * padding - kernel) / stride) + 1
    if padding and (pooled - 1) * stride >= size + padding:
        pooled -= 1
    y = np.zeros((pooled, pooled))
    for i in range(pooled):
        for j in range(pooled):
            top, left = i * stride - padding, j * stride - padding
            bottom, right = min(top + kernel, size + padding), min(left + kernel, size + padding)
            divisor = (bottom - top) * (right - left)
            window = x[max(top, 0) : min(bottom, size), max(left, 0) : min(right, size)]
            y[i, j] = window.sum() / divisor if average else window.max()
    return y


@pytest.mark.parametrize(("size", "kernel", "stride", "padding"), GEOMETRIES)
@pytest.mark.parametrize("average", [True, False])
def test_pooling_is_caffes(size: int, kernel: int, stride: int, padding: int, average: bool) -> None:
    x = np.random.default_rng(size).normal(size=(size, size))
    layer = (caffe_average_pool if average else caffe_max_pool)(kernel, stride, padding)
    got = layer(torch.from_numpy(x)[None, None])[0, 0].numpy()
    np.testing.assert_allclose(got, caffe_pool(x, kernel, stride, padding, average), rtol=0, atol=1e-14)


def test_across_channel_normalisation_is_caffes() -> None:
    n, alpha, beta = 5, 0.3, 0.75  # an alpha large enough to matter
    x = np.random.default_rng(0).normal(size=(2, 9, 3, 4))
    expected = np.empty_like(x)
    for channel in range(9):
        window = x[:, max(channel - 2, 0) : channel + 3]
        expected[:, channel] = x[:, channel] * (1 + alpha / n * (window**2).sum(1)) ** -beta
    got = AcrossChannelLRN(n, alpha, beta)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_within_channel_normalisation_is_caffes() -> None:
    n, alpha, beta = 3, 0.3, 0.75
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 6))
    expected = np.empty_like(x)
    for i in range(5):
        for j in range(6):
            window = x[:, :, max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
            scale = 1 + alpha * (window**2).sum((2, 3)) / n**2
            expected[:, :, i, j] = x[:, :, i, j] * scale**-beta
    got = WithinChannelLRN(n, alpha, beta)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-13)


@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 3, 3)])
def test_batch_norm_is_torchs_but_counts_no_batches(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ours = BatchNorm(4, eps=1e-3, keep=0.99).double()
    theirs = (nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d)(4, eps=1e-3, momentum=0.01).double()
    with torch.no_grad():
        for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            own.copy_(other.copy_(torch.linspace(0.5, 2.0, 4)))
    for _ in range(2):
        torch.testing.assert_close(ours(x), theirs(x))
    assert {name for name, _ in ours.named_buffers()} == {"running_mean", "running_var"}
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))


def test_option_a_shortcut_keeps_every_second_pixel_and_adds_empty_channels() -> None:
    x = torch.arange(96.0).reshape(2, 3, 4, 4)
    y = ZeroPaddedShortcut(3, 6, 2)(x)
    assert y.shape == (2, 6, 2, 2)
    assert torch.equal(y[:, :3], x[:, :, ::2, ::2])
    assert (y[:, 3:] == 0).all()


def test_a_residual_block_adds_its_shortcut_and_then_drops_what_is_negative() -> None:
    x = torch.tensor([-2.0, 1.0, 3.0])
    assert ResidualBlock(nn.Identity(), nn.Tanh())(x).tolist() == pytest.approx(
        [0.0, 1 + math.tanh(1), 3 + math.tanh(3)]
    )


# A weight with different fans: fan_in 10 * 25 = 250, fan_out 40 * 25 = 1000.
FAN_IN, FAN_OUT = 250, 1000


@pytest.mark.parametrize(
    ("rule", "std", "bound"),
    [
        (Gaussian(0.01), 0.01, None),
        (He(), math.sqrt(2 / FAN_OUT), None),
        (Xavier(), math.sqrt(1 / FAN_IN), math.sqrt(3 / FAN_IN)),
        (Xavier(average=True), math.sqrt(1 / 625), math.sqrt(3 / 625)),
        (FanInUniform(), math.sqrt(1 / 3 / FAN_IN), 1 / math.sqrt(FAN_IN)),
        (Uniform(0.3), 0.3 / math.sqrt(3), 0.3),
        (Constant(0.2), 0.0, None),
    ],
)
def test_initialisers_have_their_moments(rule: Initialiser, std: float, bound: float | None) -> None:
    values = torch.empty(40, 10, 5, 5)
    assert fans(values) == (FAN_IN, FAN_OUT)
    values = torch.empty(100_000)
    rule.fill(values, FAN_IN, FAN_OUT, torch.Generator().manual_seed(0))
    # Seed fixed. Six standard errors of the mean and, generously for the uniform ones, of the deviation of
    # 100,000 normal values: false alarms below 1e-8.
    mean = 0.2 if isinstance(rule, Constant) else 0.0
    n = values.numel()
    assert abs(values.double().mean().item() - mean) <= 6 * std / math.sqrt(n) + 1e-8
    assert abs(values.double().std().item() - std) <= 6 * std / math.sqrt(2 * n) + 1e-8
    if bound is not None:
        assert 0.999 * bound < values.abs().max() <= bound * (1 + 1e-6)


def test_a_layer_s_weight_and_bias_are_drawn_with_the_fans_of_its_weight() -> None:
    """Of 500 biases at a fixed seed some come close to the bound 1 / sqrt(4), and none lies beyond it."""
    layer = Linear(4, 500, weight=Xavier(), bias=FanInUniform())
    initialise(layer, 0)
    for values, bound in ((layer.weight, math.sqrt(3 / 4)), (layer.bias, 0.5)):
        assert 0.95 * bound < values.abs().max() <= bound
