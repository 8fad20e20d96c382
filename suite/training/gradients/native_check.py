"""Whether machine code agrees with autograd: losses, gradients, updates and tests, at batches that trainings use."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from suite.models.layers import BatchNorm
from suite.training.flat import FlatModule
from suite.training.gradients.backend import AutogradGradients, Batch

Pair = tuple[Tensor, Tensor]  # what machine code gives, and what autograd does
MANY = 8  # examples from which a linear layer takes more outputs together


def agrees(native: Any) -> bool:
    """Whether a native gradient is autograd's to the bound of rounding, at a random point and in the threads in use.

    Batches of 1, 3, 4 and 5 examples and of two blocks and one more reach what trainings run: whole blocks and a part
    of one, every rest of rows, few and many examples of a linear layer.
    """
    flat, generator = native.flat, torch.Generator().manual_seed(0)
    point = 0.05 * torch.randn(flat.d, generator=generator, dtype=flat.x.dtype)
    decide(flat, point)
    held = flat.x.clone(), flat.buffers.clone()
    with torch.random.fork_rng(devices=()):
        try:
            for examples in (1, 3, 4, 5, 2 * max(native.library.block, MANY) + 1):
                inputs = torch.randn(examples, *flat.module.input_shape, generator=generator, dtype=flat.x.dtype)
                batch = inputs, torch.randint(flat.module.classes, (examples,), generator=generator)
                if not all(_close(flat.d, *pair) for pair in _compared(native, point, batch)):
                    return False
        finally:
            flat.load(*held)  # a run may begin with the weights that it finds in its network
    return True


def decide(flat: FlatModule, point: Tensor) -> None:
    """Give norms biases at a point [d] that leave no ReLU to rounding: one flip changes a gradient by a hundredth.

    Outputs then lie ten deviations above 0 or, in every other channel before a ReLU of their own, below. In every
    fourth channel those before a residual sum lie below, too: all that a shortcut adds there is 0 or as far below.
    """
    biases = flat.named(point)
    for (name, layer), (_, after) in pairwise(flat.module.named_modules()):
        if isinstance(layer, BatchNorm):
            biases[f"{name}.bias"].abs_().add_(0.5)
            biases[f"{name}.bias"][:: 2 if isinstance(after, nn.ReLU) else 4].neg_()


def _compared(native: Any, point: Tensor, batch: Batch) -> Iterator[Pair]:
    """Loss, gradient and losses of a test at a point [d], and updates from there without and with momentum."""
    flat, rows = native.flat, native.flat.buffers[None].clone()
    torch.default_generator.manual_seed(0)  # the masks of dropout
    reference = AutogradGradients(native.problem)(point[None], rows, [batch])
    expected, wanted, statistics = (part.clone() for part in reference)
    torch.default_generator.manual_seed(0)
    loss, gradient, after = native(point[None], rows, [batch])
    yield loss, expected
    yield gradient, wanted
    yield after, statistics
    if not flat.q:  # tests of batch norm are autograd's
        flat.load(point)
        with flat.evaluating():
            tested = F.cross_entropy(flat.module(batch[0]), batch[1], reduction="none")
        yield native.losses(point, *batch), tested
    for momentum in (0.0, 0.9):
        torch.default_generator.manual_seed(0)
        yield from _updated(native, point, wanted[0], momentum, batch, in_place=momentum > 0)


def _updated(
    native: Any, point: Tensor, gradient: Tensor, momentum: float, batch: Batch, in_place: bool
) -> Iterator[Pair]:
    """The move of a point [d] by a fused update and its velocity [d], and both by the rule along a gradient [d].

    Not ``in_place``, another point moves along the gradient at this one, into a vector of its own.
    """
    number = ctypes.c_float if point.dtype == torch.float32 else ctypes.c_double
    segments, before = native.flat.segments, gradient.flip(0)  # a velocity of a gradient's size
    velocity, x = before.clone(), point.clone()
    start = point if in_place else point.flip(0)
    points = (x, x, x) if in_place else (point, start, x)
    # Inner, outer and decay of each tensor, no two neighbours alike: ``Rule`` in ``native_layers.h``.
    rules = [(0.5 + 0.25 * (i % 3), 1.5 - 0.25 * (i % 2), 0.01 * (i % 2)) for i in range(len(segments))]
    numbers = [value for rule in rules for value in rule]
    rule = (number * len(numbers))(*numbers)
    native.update(points, velocity, rule, momentum, batch, native.flat.buffers.clone())
    steps, moves = torch.empty_like(x), torch.empty_like(x)
    for part, (inner, outer, decay) in zip(segments, rules, strict=True):
        steps[part] = momentum * before[part] + inner * (gradient[part] + decay * start[part])
        moves[part] = -outer * steps[part]
    yield x - start, moves
    yield velocity, steps if momentum else before  # without momentum there is nothing to remember


def _close(d: int, ours: Tensor, theirs: Tensor) -> bool:
    return float((ours - theirs).norm()) <= bound(d, theirs)


def bound(d: int, reference: Tensor) -> float:
    """Largest norm of the difference of two gradients that rounding explains.

    Sums of up to d terms in another order err by about sqrt(d) eps of their size, a few times over on the way
    through a network.
    """
    return 32 * math.sqrt(d) * torch.finfo(reference.dtype).eps * float(reference.norm())
