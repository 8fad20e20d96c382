"""Gradients one at a time: through a module bound to flat views, or of any functional loss.

Or all in one call: the twin of the loop, equal to a bound that follows from d and the precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from reference_impls.contract import Algorithm, Points, Turn
from suite.training.flat import FlatModule
from suite.training.gradients.backend import Backend, Batch, Rows, Updated
from suite.training.optimizers import alike, alone_in_place


class AutogradGradients(Backend):
    """One gradient at a time through a module bound to flat views.

    Fresh gradients are taken from autograd and written once: clearing a vector and adding to it would read and
    write it twice. On a CPU every parameter's is copied to its place, which takes half to nine tenths of the time of
    a concatenation; on a GPU that would be a launch for each.
    """

    name = "looped"

    def __init__(self, problem: Any):
        super().__init__(problem)
        self.flat: FlatModule = problem.flat
        self._on_cpu = self.flat.x.device.type == "cpu"
        self._keep(self.flat.grad[None])

    @classmethod
    def of_run(cls, problem: Any, build: str | None = None) -> Backend:
        return cls(problem) if hasattr(problem, "flat") else Functional(problem)

    def step(self, algorithm: Algorithm[Any]) -> ForeachStep | None:
        return ForeachStep(self, algorithm.optimizer) if alone_in_place(algorithm, self.flat.x.dtype) else None

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
        with self.problem.kernels:
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


class ForeachStep:
    """One worker's update along autograd's tensors, by torch's fused kernel on the list of them."""

    def __init__(self, backend: AutogradGradients, solver: Any):
        self.backend, self.solver, self.flat = backend, solver, backend.flat
        self._groups = alike(solver.multipliers(self.flat.segments))
        self._views: dict[int, list[Tensor]] = {}

    def __call__(
        self, turn: Turn, points: Points, state: Any, buffers: Tensor, examples: Tensor, lr: Tensor
    ) -> Updated:
        """The state itself, overwritten; the loss is the one before the update."""
        loss, grads = self.backend.tensors(state.x, buffers[0], self.backend.problem.fetch(examples[0]))
        x, velocity, rate = self._parts(state.x), self._parts(state.memory), lr.item()
        laid = [laid_as(part, grad) for part, grad in zip(x, grads, strict=True)]
        for scale, decay, mine in self._groups:
            self.solver.advance(
                [x[i] for i in mine], [laid[i] for i in mine], [velocity[i] for i in mine], rate * scale, decay
            )
        return state, self.flat.buffers[None].clone() if self.flat.q else buffers, {"loss": loss}

    def _parts(self, vector: Tensor) -> list[Tensor]:
        """A vector's parameters as views; of the two vectors that a state holds they are made once."""
        at = vector.data_ptr()
        if at not in self._views:
            if len(self._views) > 2:  # a state was loaded since
                self._views.clear()
            self._views[at] = self.flat.views(vector)
        return self._views[at]


def laid_as(part: Tensor, grad: Tensor | None) -> Tensor:
    """A gradient in the order of its parameter, as the fused kernel assumes it; zero for an unused parameter."""
    if grad is None:
        return torch.zeros_like(part)
    return grad if grad.stride() == part.stride() else torch.empty_like(part).copy_(grad)


class Functional(Backend):
    """One gradient at a time of any problem's functional loss (quadratics)."""

    name = "looped"

    def __init__(self, problem: Any):
        super().__init__(problem)
        self._function = grad_and_value(problem.loss, has_aux=True)

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        grads, losses, after = [], [], []
        for point, row, batch in zip(points, buffers, batches, strict=True):
            grad, (loss, new) = self._function(point, row, batch)
            grads.append(grad)
            losses.append(loss)
            after.append(new)
        return torch.stack(losses), torch.stack(grads), torch.stack(after)


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
        return "masks of dropout are drawn run by run, row by row" if problem.dropout else None

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        batch = tuple(torch.stack(parts) for parts in zip(*batches, strict=True))
        flat = self.flat
        with self.problem.kernels:
            grads, (losses, after) = self._function(
                points if flat is None else flat.named_rows(points), buffers, batch
            )
        return losses, grads if flat is None else flat.flatten_rows(grads), after
