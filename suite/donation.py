"""A local solver's step that overwrites what it is given: no new vectors, block after block in the cache.

The solvers are pure and written with whole vectors: each of their operations reads and writes all parameters, which
for a few hundred thousand of them costs as much as the gradient of one example. A session that owns its state, under
an algorithm that reads no part of it after the step, may hand it over. The operations and their order are the
solver's own, so the bits are too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from suite.descent import ALL, Caffe, Stepped, Torch

# Whether the points may be overwritten besides the memory, by algorithm. Plain SGD's update is the solver's step;
# Rudra's server keeps its older weights, which late gradients still read.
HANDS_OVER = {"reference_impls.inverse_law": True, "reference_impls.rudra": False}
BLOCK = 65_536  # numbers: 256 kB of float32, of which a level-2 cache holds several
KEPT = 16  # triples of vectors whose blocks are remembered


class Block(NamedTuple):
    """Views of one block of the vectors of a step."""

    x: Tensor
    new: Tensor  # where the points go: x itself, if it may be overwritten
    velocity: Tensor
    grad: Tensor
    work: Tensor  # scratch
    rate_scale: Tensor | None
    decay: Tensor  # a factor, or one for each number


class Donated:
    """``Caffe`` or ``Torch`` in place: ``memory``, and ``points`` if asked for, hold the new values afterwards.

    A session steps the same vectors again and again, so their blocks are cut once: on a small network, cutting
    them costs as much as the arithmetic.
    """

    def __init__(self, descent: Caffe | Torch, points: bool = True):
        self.descent, self.points = descent, points
        self._blocks: dict[tuple[Any, ...], tuple[Tensor, list[Block]]] = {}

    def init(self, points: Tensor) -> Tensor:
        return self.descent.init(points)

    def step(self, memory: Tensor, points: Tensor, grads: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        """New points and the memory itself, for vectors [s]; other shapes and mixed types take the pure step."""
        if points.dim() != 1 or not (points.dtype == grads.dtype == memory.dtype == lr.dtype):
            return self.descent.step(memory, points, grads, lr, part)
        new = points if self.points else torch.empty_like(points)
        momentum, blocks = (
            self._cached(memory, points, grads, part)
            if new is points
            else self._cut(memory, points, grads, part, new)
        )
        advance, decays = _caffe if isinstance(self.descent, Caffe) else _torch, self.descent.decay > 0
        for block in blocks:
            rate = lr if block.rate_scale is None else lr * block.rate_scale
            advance(block, rate, momentum, decays)
        return new, memory

    def _cached(self, memory: Tensor, points: Tensor, grads: Tensor, part: slice) -> tuple[Tensor, list[Block]]:
        key = (points.dtype, len(points), part.start, *(_place(t) for t in (points, memory, grads)))
        if key not in self._blocks:
            if len(self._blocks) == KEPT:
                self._blocks.clear()
            self._blocks[key] = self._cut(memory, points, grads, part, points)
        return self._blocks[key]

    def _cut(
        self, memory: Tensor, points: Tensor, grads: Tensor, part: slice, new: Tensor
    ) -> tuple[Tensor, list[Block]]:
        """Momentum as a tensor (a number would be made into one at every use) and the blocks of a step.

        Blocks are views, so the memory whose places name them cannot be given to other vectors meanwhile.
        """
        rule = self.descent
        first = part.start or 0
        work = points.new_empty(min(BLOCK, len(points)))
        momentum, decay = (torch.tensor(value, dtype=points.dtype) for value in (rule.momentum, rule.decay))
        blocks = []
        for start in range(0, len(points), BLOCK):
            here = slice(start, min(start + BLOCK, len(points)))
            there = slice(first + here.start, first + here.stop)
            blocks.append(
                Block(
                    points[here],
                    new[here],
                    memory[here],
                    grads[here],
                    work[: here.stop - here.start],
                    None if rule.lr_scale is None else rule.lr_scale[there],
                    decay if rule.decay_scale is None else rule.decay * rule.decay_scale[there],
                )
            )
        return momentum, blocks


def _place(vector: Tensor) -> tuple[int, tuple[int, ...]]:
    return vector.data_ptr(), vector.stride()


def _caffe(block: Block, rate: Tensor, momentum: Tensor, decays: bool) -> None:
    x, new, velocity, grad, work = block[:5]
    if decays:
        grad = torch.mul(x, block.decay, out=work).add_(grad)
    velocity.mul_(momentum).add_(torch.mul(grad, rate, out=work))
    torch.sub(x, velocity, out=new)


def _torch(block: Block, rate: Tensor, momentum: Tensor, decays: bool) -> None:
    x, new, velocity, grad, work = block[:5]
    if decays:
        grad = torch.mul(x, block.decay, out=work).add_(grad)
    velocity.mul_(momentum).add_(grad)
    torch.sub(x, torch.mul(velocity, rate, out=work), out=new)


def donated(algorithm: Any, descent: Any, points: Tensor) -> Any:
    """The solver that may overwrite the state of this algorithm, where there is one; otherwise the solver itself."""
    both = HANDS_OVER.get(getattr(algorithm, "__name__", ""))
    if both is None or type(descent) not in (Caffe, Torch) or points.device.type != "cpu":
        return descent
    return Donated(descent, both)
