"""Gradients at the points an algorithm asks for: looped over bound views, or vectorised.

Both satisfy ``(points [n, d], buffers [n, q], batches) -> losses [n], grads [n, d], buffers [n, q]`` and are
twins: they agree to a bound that follows from d and the precision, not to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from reference_impls.contract import Ask
from suite.flat import FlatModule
from suite.problems import Batch, Problem

Rows = tuple[Tensor, Tensor, Tensor]


class Gradients(Protocol):
    """Results are borrowed: valid until the next call."""

    path: str
    problem: Any

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows: ...


class Bound:
    """One gradient at a time through a module bound to flat views."""

    path = "looped"

    def __init__(self, problem: Any):
        self.problem = problem
        self.flat: FlatModule = problem.flat

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        if len(batches) == 1:
            loss = self._one(points[0], buffers[0], batches[0])
            after = self.flat.buffers[None] if self.flat.q else buffers
            return loss[None], self.flat.grad[None], after.clone() if self.flat.q else after
        losses = points.new_empty(len(batches))
        grads = torch.empty_like(points)
        after = torch.empty_like(buffers)
        for i, batch in enumerate(batches):
            losses[i] = self._one(points[i], buffers[i], batch)
            grads[i] = self.flat.grad
            after[i] = self.flat.buffers
        return losses, grads, after

    def _one(self, point: Tensor, buffers: Tensor, batch: Batch) -> Tensor:
        flat = self.flat
        flat.load(point, buffers)
        flat.grad.zero_()
        inputs, targets = batch
        loss = self.problem.criterion(flat.module(inputs), targets)
        loss.backward()
        return loss.detach()


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


class Vectorised:
    """All gradients in one call, the row axis added by vmap."""

    path = "vectorised"

    def __init__(self, problem: Problem):
        self.problem = problem
        randomness = "different" if problem.dropout else "error"
        self._function = vmap(grad_and_value(problem.loss, has_aux=True), randomness=randomness)

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        stacked = tuple(torch.stack(parts) for parts in zip(*batches, strict=True))
        grads, (losses, after) = self._function(points, buffers, stacked)
        return losses, grads, after


PATHS: dict[str, Callable[[Any], Gradients]] = {
    "looped": lambda problem: cast(Gradients, Bound(problem) if hasattr(problem, "flat") else Functional(problem)),
    "vectorised": Vectorised,
}


def answer(
    gradients: Gradients, ask: Ask, buffers: Tensor, examples: Tensor, *, join: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Losses [n], sums of gradients [p, d] and buffers [n, q] for an Ask with examples [n, b].

    Entries that share a point are joined into one larger batch when ``join`` allows: the mean gradient is the
    same in exact arithmetic. Batch norm would couple the joined batches, so its networks are never joined.
    """
    problem, shares = gradients.problem, ask.shares
    if max(shares) == 1:
        batches = [problem.fetch(row) for row in examples]
        return gradients(ask.points, buffers, batches)
    if join and not problem.batch_norm:
        batches = [problem.fetch(rows.reshape(-1)) for rows in examples.split(shares)]
        if gradients.path == "vectorised" and len(set(shares)) == 1:
            losses, grads, _ = gradients(ask.points, buffers[: len(shares)], batches)
        else:
            parts = [
                gradients(point[None], buffers[:1], [batch]) for point, batch in zip(ask.points, batches, strict=True)
            ]
            losses = torch.cat([part[0] for part in parts])
            grads = torch.cat([part[1] for part in parts]) if len(parts) > 1 else parts[0][1]
        counts = torch.tensor(shares, device=grads.device)
        return losses.repeat_interleave(counts), grads * counts.to(grads)[:, None], buffers
    points = ask.points.repeat_interleave(torch.tensor(shares, device=ask.points.device), 0)
    losses, grads, after = gradients(points, buffers, [problem.fetch(row) for row in examples])
    return losses, torch.stack([part.sum(0) for part in grads.split(shares)]), after
