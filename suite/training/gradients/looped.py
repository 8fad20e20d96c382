"""Gradients one at a time: through a module bound to flat views, or of any functional loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import grad_and_value

from suite.training.flat import FlatModule
from suite.training.gradients.types import Batch, Problem, Rows


class Bound:
    """One gradient at a time through a module bound to flat views.

    Fresh gradients are taken from autograd and written once: clearing a vector and adding to it would read and
    write it twice. On a CPU every parameter's is copied to its place, which takes half to nine tenths of the time of
    a concatenation; on a GPU that would be a launch for each.
    """

    path = "looped"

    def __init__(self, problem: Any):
        self.problem = problem
        self.flat: FlatModule = problem.flat
        self._on_cpu = self.flat.x.device.type == "cpu"
        self._keep(self.flat.grad[None])

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        n = len(batches)
        if len(self._grads) < n:
            self._keep(points.new_empty(n, self.flat.d))
        losses = []
        after = torch.empty_like(buffers) if self.flat.q else buffers
        for i, batch in enumerate(batches):
            losses.append(self._one(points[i], buffers[i], batch, i))
            if self.flat.q:
                after[i] = self.flat.buffers
        return torch.stack(losses), self._grads[:n], after

    def _keep(self, grads: Tensor) -> None:
        """Write gradients to these rows [rows, d] from now on."""
        self._grads = grads
        self._views = [self.flat.views(row) for row in grads] if self._on_cpu else []

    def tensors(self, point: Tensor, buffers: Tensor, batch: Batch) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        """Loss (0-d) and autograd's own gradients at a point [d], one for each parameter; None for an unused one."""
        flat = self.flat
        flat.borrow(point, buffers)
        inputs, targets = batch
        numerics = self.problem.numerics
        with numerics.kernels():
            with numerics.forward(flat.x.device.type):
                loss = self.problem.criterion(flat.module(inputs), targets)
            return loss.detach(), torch.autograd.grad(loss, flat.parameters, allow_unused=True)

    def _one(self, point: Tensor, buffers: Tensor, batch: Batch, row: int) -> Tensor:
        loss, grads = self.tensors(point, buffers, batch)
        if self._on_cpu:
            for view, grad in zip(self._views[row], grads, strict=True):
                view.zero_() if grad is None else view.copy_(grad)
        else:
            self.flat.flatten(grads, self._grads[row])
        return loss


class Functional:
    """One gradient at a time of any problem's functional loss (quadratics)."""

    path = "looped"

    def __init__(self, problem: Problem):
        self.problem = problem
        self._function = grad_and_value(problem.loss, has_aux=True)

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        grads, losses, after = [], [], []
        for point, row, batch in zip(points, buffers, batches, strict=True):
            grad, (loss, new) = self._function(point, row, batch)
            grads.append(grad)
            losses.append(loss)
            after.append(new)
        return torch.stack(losses), torch.stack(grads), torch.stack(after)
