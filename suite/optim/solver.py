"""The local solver of the optimisers: torch's SGD with each parameter group's own rate, momentum and decay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.sgd import sgd

from suite.optim.vector import Vector
from suite.training.optimizers import ALL, Stepped, TorchSGD


class Grouped:
    """A ``contract.Optimizer`` on the vector of ``groups``, whose values are read at every step.

    ``fused`` steps by torch's fused kernel, which overwrites points and memory in one pass where the solver of the
    papers' figures, ``Torch``, makes six and leaves them as they are; it rounds a product and a sum once and so
    differs from it in the last places. The rate handed to ``step`` multiplies the groups' own.
    """

    def __init__(self, vector: Vector, groups: Sequence[Mapping[str, Any]], *, fused: bool):
        self.vector, self.groups, self.fused = vector, groups, fused
        self.divisor = 1  # of all rates

    def init(self, points: Tensor) -> Tensor:
        return torch.zeros_like(points)

    def step(self, memory: Tensor, points: Tensor, grads: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        """New points and memory [..., s], where ``part`` selects s of the d."""
        start, stop, _ = part.indices(self.vector.d)
        cuts = [
            (slice(max(start, own.start) - start, min(stop, own.stop) - start), group)
            for own, group in zip(self.vector.groups, self.groups, strict=True)
            if own.start < stop and own.stop > start
        ]
        if self.fused:
            return self._fused(memory, points, grads, lr, cuts)
        stepped = [
            TorchSGD(group["momentum"], group["weight_decay"]).step(
                memory[..., cut], points[..., cut], grads[..., cut], lr * (group["lr"] / self.divisor)
            )
            for cut, group in cuts
        ]
        if len(stepped) == 1:
            return stepped[0]
        return torch.cat([x for x, _ in stepped], -1), torch.cat([v for _, v in stepped], -1)

    def _fused(
        self,
        memory: Tensor,
        points: Tensor,
        grads: Tensor,
        lr: Tensor,
        cuts: Sequence[tuple[slice, Mapping[str, Any]]],
    ) -> Stepped:
        factor = float(lr)
        for cut, group in cuts:
            # the kernel takes contiguous tensors: all rows [m, d] at once, a part of them row by row
            def pieces(vector: Tensor, cut: slice = cut) -> list[Tensor]:
                return [vector] if len(cuts) == 1 else list(vector[..., cut].reshape(-1, cut.stop - cut.start))

            sgd(
                pieces(points),
                pieces(grads),
                [piece if group["momentum"] else None for piece in pieces(memory)],
                fused=True,
                momentum=group["momentum"],
                weight_decay=group["weight_decay"],
                lr=factor * (group["lr"] / self.divisor),
                dampening=0.0,
                nesterov=False,
                maximize=False,
            )
        return points, memory
