"""A local solver's step that overwrites what it is given: no new vectors, block after block in the cache.

The solvers are pure and written with whole vectors: each of their operations reads and writes all parameters, which
for a few hundred thousand of them costs as much as the gradient of one example. A session that owns its state, under
an algorithm that reads no part of it after the step, may hand it over. The operations and their order are the
solver's own, so the bits are too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from suite.descent import ALL, Caffe, Stepped, Torch

# Whether the points may be overwritten besides the memory, by algorithm. Plain SGD's update is the solver's step;
# Rudra's server keeps its older weights, which late gradients still read.
HANDS_OVER = {"reference_impls.inverse_law": True, "reference_impls.rudra": False}
BLOCK = 65_536  # numbers: 256 kB of float32, of which a level-2 cache holds several


@dataclass(frozen=True)
class Donated:
    """``Caffe`` or ``Torch`` in place: ``memory``, and ``points`` if asked for, hold the new values afterwards."""

    descent: Caffe | Torch
    points: bool = True
    _work: dict[torch.dtype, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def init(self, points: Tensor) -> Tensor:
        return self.descent.init(points)

    def step(self, memory: Tensor, points: Tensor, grads: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        """New points and the memory itself, for vectors [s]; other shapes and mixed types take the pure step."""
        if points.dim() != 1 or not (points.dtype == grads.dtype == memory.dtype == lr.dtype):
            return self.descent.step(memory, points, grads, lr, part)
        new = points if self.points else torch.empty_like(points)
        first = part.indices(points.shape[-1])[0] if part.start is None else part.start
        for start in range(0, len(points), BLOCK):
            block = slice(start, min(start + BLOCK, len(points)))
            where = slice(first + start, first + block.stop)
            self._block(memory[block], points[block], grads[block], lr, where, new[block])
        return new, memory

    def _block(self, velocity: Tensor, x: Tensor, grad: Tensor, lr: Tensor, part: slice, new: Tensor) -> None:
        rule = self.descent
        if x.dtype not in self._work:
            self._work[x.dtype] = torch.empty(BLOCK, dtype=x.dtype)
        work = self._work[x.dtype][: len(x)]
        rate = lr if rule.lr_scale is None else lr * rule.lr_scale[part]
        if rule.decay:
            decay = rule.decay if rule.decay_scale is None else rule.decay * rule.decay_scale[part]
            grad = torch.mul(x, decay, out=work).add_(grad)
        velocity.mul_(rule.momentum)
        if isinstance(rule, Caffe):
            velocity.add_(torch.mul(grad, rate, out=work))
            torch.sub(x, velocity, out=new)
        else:
            velocity.add_(grad)
            torch.sub(x, torch.mul(velocity, rate, out=work), out=new)


def donated(algorithm: Any, descent: Any, points: Tensor) -> Any:
    """The solver that may overwrite the state of this algorithm, where there is one; otherwise the solver itself."""
    both = HANDS_OVER.get(getattr(algorithm, "__name__", ""))
    may = both is not None and type(descent) in (Caffe, Torch) and points.device.type == "cpu"
    return Donated(descent, both) if may else descent
