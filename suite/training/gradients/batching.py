"""From what an algorithm asks for to gradients: entries that share a point are joined where that is exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from reference_impls.contract import Ask
from suite.training.gradients.types import Gradients, Rows


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
