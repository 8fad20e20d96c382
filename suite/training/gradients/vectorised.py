"""All gradients in one call: the twin of the loop, equal to a bound that follows from d and the precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from suite.training.flat import FlatModule
from suite.training.gradients.backend import Backend
from suite.training.gradients.types import Batch, Rows

MASKS = "a network with dropout cannot be packed or vectorised: its masks are drawn run by run, row by row"


class Vectorised(Backend):
    """All gradients in one call, the row axis added by vmap.

    A network is differentiated by its tensors: by the flat vector, each of them would cost a pass over all.
    Dropout's masks are drawn for all rows at once, so a row's depend on the number of rows: for timing alone, and
    refused in runs (``of_run``).
    """

    name = "vectorised"
    one_length = True

    def __init__(self, problem: Any):
        super().__init__(problem)
        self.flat: FlatModule | None = getattr(problem, "flat", None)
        loss = problem.loss if self.flat is None else problem.loss_of
        randomness = "different" if problem.dropout else "error"
        self._function = vmap(grad_and_value(loss, has_aux=True), randomness=randomness)

    @classmethod
    def refusal(cls, problem: Any) -> str | None:
        return MASKS if hasattr(problem, "flat") and draws_masks(problem.flat.module) else None

    @classmethod
    def of_run(cls, problem: Any, build: str | None = None) -> Vectorised:
        if why := cls.refusal(problem):
            raise ValueError(f"{why}; use path looped")
        return cls(problem)

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        return self.stacked(points, buffers, tuple(torch.stack(parts) for parts in zip(*batches, strict=True)))

    def stacked(self, points: Tensor, buffers: Tensor, batch: Batch) -> Rows:
        """The same for batches that already lie in one tensor: inputs [n, b, ...], targets [n, b]."""
        flat = self.flat
        numerics = self.problem.numerics
        with numerics.kernels(), numerics.forward(points.device.type):
            grads, (losses, after) = self._function(
                points if flat is None else flat.named_rows(points), buffers, batch
            )
        return losses, grads if flat is None else flat.flatten_rows(grads), after


def draws_masks(module: torch.nn.Module) -> bool:
    """Whether a network drops out anything in training."""
    return any(isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.p > 0 for m in module.modules())
