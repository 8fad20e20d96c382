"""Layers with the semantics of the frameworks the papers used, each parameter with its initialiser.

Caffe's semantics were read in its sources (BVLC/caffe 9b891540: src/caffe/layers, include/caffe/filler.hpp).
Every operation of a network is a module, also the sum of a residual block, so that a walk over the modules
sees the dataflow graph.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from suite.models.initialisers import Constant, Initialiser, ParameterSpec


def spec(rule: ParameterSpec | Initialiser) -> ParameterSpec:
    """The rule itself, or an initialiser with both multipliers 1."""
    return rule if isinstance(rule, ParameterSpec) else ParameterSpec(rule)


class Conv2d(nn.Conv2d):
    """Convolution ``[B, inputs, H, W] -> [B, outputs, H', W']``; ``bias=None`` leaves the bias out."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        *,
        weight: ParameterSpec | Initialiser,
        bias: ParameterSpec | Initialiser | None,
        stride: int = 1,
        padding: int = 0,
        groups: int = 1,
    ) -> None:
        super().__init__(inputs, outputs, kernel, stride, padding, groups=groups, bias=bias is not None)
        self.specs = {"weight": spec(weight)} | ({} if bias is None else {"bias": spec(bias)})


class Linear(nn.Linear):
    """Affine map ``[B, inputs] -> [B, outputs]``; ``bias=None`` leaves the bias out."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        weight: ParameterSpec | Initialiser,
        bias: ParameterSpec | Initialiser | None,
    ) -> None:
        super().__init__(inputs, outputs, bias=bias is not None)
        self.specs = {"weight": spec(weight)} | ({} if bias is None else {"bias": spec(bias)})


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation over all but the channel axis of ``[B, C, H, W]`` or ``[B, C]``.

    The only buffers are ``running_mean`` and ``running_var``: PyTorch's integer count of batches is left out,
    so the buffers of a network flatten into one row of one dtype, and averaging rows has a meaning.

    ``keep`` is Caffe's moving-average fraction, 1 minus PyTorch's ``momentum``.
    """

    def __init__(self, features: int, *, eps: float = 1e-5, keep: float = 0.9) -> None:
        super().__init__(features, eps=eps, momentum=1 - keep)
        self.num_batches_tracked = None
        self.specs = {"weight": ParameterSpec(Constant(1.0)), "bias": ParameterSpec(Constant(0.0))}

    def _check_input_dim(self, input: Tensor) -> None:
        """PyTorch's refuses [B, C]."""


class LayerNorm(nn.LayerNorm):
    """Normalisation over the last axis of ``[..., features]``."""

    def __init__(self, features: int) -> None:
        super().__init__(features)
        self.specs = {"weight": ParameterSpec(Constant(1.0)), "bias": ParameterSpec(Constant(0.0))}


class Embedding(nn.Embedding):
    """A row of ``width`` numbers for each of ``count`` codes, ``[...] -> [..., width]``."""

    def __init__(self, count: int, width: int, *, weight: ParameterSpec | Initialiser) -> None:
        super().__init__(count, width)
        self.specs = {"weight": spec(weight)}


def caffe_max_pool(kernel: int, stride: int, padding: int = 0) -> nn.MaxPool2d:
    """Caffe's MAX pooling: the number of windows is rounded up, overhanging windows are clipped.

    Without padding Caffe keeps a last window that starts outside the image, which PyTorch drops; such a window exists
    only where windows leave gaps, so ``stride`` must be at most ``kernel``.
    """
    return nn.MaxPool2d(kernel, stride, padding, ceil_mode=True)


def caffe_average_pool(kernel: int, stride: int, padding: int = 0) -> nn.AvgPool2d:
    """Caffe's AVE pooling: windows rounded up; the divisor counts padding but not what hangs over it."""
    return nn.AvgPool2d(kernel, stride, padding, ceil_mode=True, count_include_pad=True)


class AcrossChannelLRN(nn.LocalResponseNorm):
    """x (1 + alpha / n * sum of squares over n channels)^-beta, Caffe's ACROSS_CHANNELS."""

    def __init__(self, size: int, alpha: float, beta: float) -> None:
        super().__init__(size, alpha, beta, k=1.0)


class WithinChannelLRN(nn.Module):
    """x (1 + alpha * mean of squares over an n x n window)^-beta, Caffe's WITHIN_CHANNEL.

    The mean divides by n^2 also at the border, where the window covers zeros; n is odd.
    """

    def __init__(self, size: int, alpha: float, beta: float) -> None:
        super().__init__()
        self.size, self.alpha, self.beta = size, alpha, beta

    def forward(self, x: Tensor) -> Tensor:
        mean = F.avg_pool2d(x * x, self.size, stride=1, padding=self.size // 2)
        return x * (1 + self.alpha * mean) ** -self.beta


class Add(nn.Module):
    """Sum of a residual branch and its shortcut, both ``[B, C, H, W]``."""

    def forward(self, branch: Tensor, shortcut: Tensor) -> Tensor:
        return branch + shortcut


class Concatenate(nn.Module):
    """Join ``[B, C_i, H, W]`` along the channels."""

    def forward(self, *branches: Tensor) -> Tensor:
        return torch.cat(branches, 1)


class ZeroPaddedShortcut(nn.Module):
    """He et al.'s option A: every ``stride``-th pixel, missing channels filled with zeros; no parameters."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.missing, self.stride = outputs - inputs, stride

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.missing))


class ResidualBlock(nn.Module):
    """ReLU(branch(x) + shortcut(x)); the shortcut is an identity, zero-padded, or a projection."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.branch = branch
        self.shortcut = shortcut
        self.add = Add()
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.add(self.branch(x), self.shortcut(x)))
