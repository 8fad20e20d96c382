"""Whether machine code agrees with autograd: losses, gradients, updates and tests, at batches that trainings use."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

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
    held = flat.x.clone()
    with torch.random.fork_rng(devices=()):
        try:
            for examples in (1, 3, 4, 5, 2 * max(native.library.block, MANY) + 1):
                inputs = torch.randn(examples, *flat.module.input_shape, generator=generator, dtype=flat.x.dtype)
                batch = inputs, torch.randint(flat.module.classes, (examples,), generator=generator)
                if not all(_close(flat.d, *pair) for pair in _compared(native, point, batch)):
                    return False
        finally:
            flat.load(held)  # a run may begin with the weights that it finds in its network
    return True


def _compared(native: Any, point: Tensor, batch: Batch) -> Iterator[Pair]:
    """Loss, gradient and losses of a test at a point [d], and updates from there without and with momentum."""
    flat, rows = native.flat, native.flat.buffers[None]
    torch.default_generator.manual_seed(0)  # the masks of dropout
    expected, wanted, _ = (part.clone() for part in AutogradGradients(native.problem)(point[None], rows, [batch]))
    torch.default_generator.manual_seed(0)
    loss, gradient, _ = native(point[None], rows, [batch])
    yield loss, expected
    yield gradient, wanted
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
    native.update(points, velocity, (number * len(numbers))(*numbers), momentum, batch)
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
