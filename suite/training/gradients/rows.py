"""Gradients at the points an algorithm asks for: looped over bound views, or vectorised.

Both satisfy ``(points [n, d], buffers [n, q], batches) -> losses [n], grads [n, d], buffers [n, q]`` and are
twins: they agree to a bound that follows from d and the precision, not to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from reference_impls.contract import Ask
from suite.training.flat import FlatModule
from suite.training.numerics import Kernels, lowered
from suite.training.problem import Batch, Problem

Rows = tuple[Tensor, Tensor, Tensor]


class Gradients(Protocol):
    """Results are borrowed: valid until the next call."""

    path: str
    problem: Any

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows: ...


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
        self._kernels = Kernels()

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

    def _one(self, point: Tensor, buffers: Tensor, batch: Batch, row: int) -> Tensor:
        flat = self.flat
        flat.borrow(point, buffers)
        inputs, targets = batch
        with self._kernels:
            with lowered(flat.x.device.type):
                loss = self.problem.criterion(flat.module(inputs), targets)
            grads = torch.autograd.grad(loss, flat.parameters, allow_unused=True)
        if self._on_cpu:
            for view, grad in zip(self._views[row], grads, strict=True):
                view.zero_() if grad is None else view.copy_(grad)
        else:
            flat.flatten(grads, self._grads[row])
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


def draws_masks(module: torch.nn.Module) -> bool:
    """Whether a network drops out anything in training."""
    return any(isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.p > 0 for m in module.modules())


def seed_masks(number: int, device: torch.device) -> None:
    """Have the next masks of dropout on ``device`` follow from a number.

    ``torch.manual_seed`` seeds the generators of all devices, which takes a share of a small network's update.
    """
    if device.type == "cuda":
        torch.cuda.manual_seed(number)
    else:
        torch.default_generator.manual_seed(number)


class Vectorised:
    """All gradients in one call, the row axis added by vmap.

    A network is differentiated by its tensors: by the flat vector, each of them would cost a pass over all.
    Dropout's masks are drawn for all rows at once, so a row's depend on the number of rows: for timing alone, and
    refused in runs (``gradients_of_run``).
    """

    path = "vectorised"

    def __init__(self, problem: Any):
        self.problem = problem
        self.flat: FlatModule | None = getattr(problem, "flat", None)
        loss = problem.loss if self.flat is None else problem.loss_of
        self._kernels = Kernels()
        randomness = "different" if problem.dropout else "error"
        self._function = vmap(grad_and_value(loss, has_aux=True), randomness=randomness)

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        return self.stacked(points, buffers, tuple(torch.stack(parts) for parts in zip(*batches, strict=True)))

    def stacked(self, points: Tensor, buffers: Tensor, batch: Batch) -> Rows:
        """The same for batches that already lie in one tensor: inputs [n, b, ...], targets [n, b]."""
        flat = self.flat
        with self._kernels, lowered(points.device.type):
            grads, (losses, after) = self._function(
                points if flat is None else flat.named_rows(points), buffers, batch
            )
        return losses, grads if flat is None else flat.flatten_rows(grads), after


def _captured(problem: Any) -> Gradients:
    from suite.training.gradients.cuda_graph import Captured

    return Captured(problem)


PATHS: dict[str, Callable[[Any], Gradients]] = {
    "looped": lambda problem: cast(Gradients, Bound(problem) if hasattr(problem, "flat") else Functional(problem)),
    "vectorised": Vectorised,
    "captured": _captured,
}


def refusals(problem: Any) -> dict[str, str]:
    """The paths that a problem cannot take here, and why."""
    from suite.training.gradients.cuda_graph import refusal

    found = {}
    if why := refusal(problem):
        found["captured"] = why
    if hasattr(problem, "flat") and draws_masks(problem.flat.module):
        found["vectorised"] = (
            "a network with dropout cannot be packed or vectorised: its masks are drawn run by run, row by row"
        )
    return found


def gradients_of_run(path: str, problem: Any) -> Gradients:
    """The gradients of a run executed by ``path``.

    Raises ValueError where they would not be those of the loop: vectorised with dropout, whose masks the loop draws
    row by row. (Captured refuses dropout itself.)
    """
    if path == "vectorised" and (why := refusals(problem).get(path)):
        raise ValueError(f"{why}; use path looped")
    return PATHS[path](problem)


class Work(NamedTuple):
    """The gradients behind an Ask: r points with a batch each."""

    points: Tensor  # [r, d]
    buffers: Tensor  # [r, q]
    examples: Sequence[Tensor]  # r index vectors; their lengths may differ
    joined: bool  # whether the entries that share a point became one batch


def spread(problem: Any, ask: Ask, buffers: Tensor, examples: Tensor, *, join: bool = True) -> Work:
    """What has to be computed for an Ask with examples [n, b].

    Entries that share a point are joined into one larger batch when ``join`` allows: the mean gradient is the
    same in exact arithmetic. Batch norm would couple the joined batches, so its networks are never joined.
    """
    shares = ask.shares
    if max(shares) == 1:
        return Work(ask.points, buffers, examples.unbind(), False)
    if join and not problem.batch_norm:
        parts = [rows.reshape(-1) for rows in examples.split(shares)]
        return Work(ask.points, buffers[: len(shares)], parts, True)
    points = ask.points.repeat_interleave(torch.tensor(shares, device=ask.points.device), 0)
    return Work(points, buffers, examples.unbind(), False)


def collect(ask: Ask, work: Work, buffers: Tensor, rows: Rows) -> Rows:
    """Losses [n], sums of gradients [p, d] and buffers [n, q] of an Ask from the rows of its work."""
    losses, grads, after = rows
    if work.joined:
        counts = torch.tensor(ask.shares, device=grads.device)
        return losses.repeat_interleave(counts), grads * counts.to(grads)[:, None], buffers
    if max(ask.shares) == 1:
        return losses, grads, after
    return losses, torch.stack([part.sum(0) for part in grads.split(ask.shares)]), after


def answer(gradients: Gradients, ask: Ask, buffers: Tensor, examples: Tensor, *, join: bool = True) -> Rows:
    """Losses [n], sums of gradients [p, d] and buffers [n, q] for an Ask with examples [n, b]; see ``spread``."""
    work = spread(gradients.problem, ask, buffers, examples, join=join)
    if hasattr(gradients, "indexed") and len({len(rows) for rows in work.examples}) == 1:
        rows = gradients.indexed(work.points, work.buffers, torch.stack(tuple(work.examples)))
        return collect(ask, work, buffers, rows)
    batches = [gradients.problem.fetch(rows) for rows in work.examples]
    if len({len(rows) for rows in work.examples}) == 1 or gradients.path == "looped":
        return collect(ask, work, buffers, gradients(work.points, work.buffers, batches))
    parts = [gradients(work.points[i : i + 1], work.buffers[i : i + 1], [batch]) for i, batch in enumerate(batches)]
    losses, grads, after = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    return collect(ask, work, buffers, (losses, grads, after))
