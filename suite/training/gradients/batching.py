"""From what an algorithm asks for to gradients: entries that share a point are joined where that is exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from reference_impls.contract import Points
from reference_impls.numbers import on_device
from suite.training.gradients.backend import Backend
from suite.training.gradients.types import Problem, Rows


class GradientWork(NamedTuple):
    """What gradients are computed: r points with a batch each."""

    parameters: Tensor  # [r, d]
    buffers: Tensor  # [r, q]
    examples: Sequence[Tensor]  # r index vectors; their lengths may differ
    joined: bool  # whether the entries that share a point became one batch


def join_batches(
    problem: Problem, points: Points, buffers: Tensor, examples: Tensor, *, join: bool = True
) -> GradientWork:
    """What has to be computed for points with examples [n, b].

    Entries that share a point are joined into one larger batch when ``join`` allows: the mean gradient is the
    same in exact arithmetic. Batch norm would couple the joined batches, so its networks are never joined.
    """
    shares = points.shares
    if max(shares) == 1:
        return GradientWork(points.parameters, buffers, examples.unbind(), False)
    if join and not problem.batch_norm:
        parts = [rows.reshape(-1) for rows in examples.split(shares)]
        return GradientWork(points.parameters, buffers[: len(shares)], parts, True)
    repeats = on_device(shares, points.parameters.device)
    rows = points.parameters.repeat_interleave(repeats, 0, output_size=sum(shares))
    return GradientWork(rows, buffers, examples.unbind(), False)


def split_results(points: Points, work: GradientWork, buffers: Tensor, rows: Rows) -> Rows:
    """Losses [n], sums of gradients [p, d] and buffers [n, q] from the rows of the work."""
    losses, grads, after = rows
    if work.joined:
        counts = on_device(points.shares, grads.device)
        repeated = losses.repeat_interleave(counts, output_size=sum(points.shares))
        return repeated, grads * counts.to(grads)[:, None], buffers
    if max(points.shares) == 1:
        return losses, grads, after
    return losses, torch.stack([part.sum(0) for part in grads.split(points.shares)]), after


def compute_gradients(
    backend: Backend, points: Points, buffers: Tensor, examples: Tensor, *, join: bool = True
) -> Rows:
    """Losses [n], sums of gradients [p, d], buffers [n, q] for points with examples [n, b]; see ``join_batches``."""
    work = join_batches(backend.problem, points, buffers, examples, join=join)
    return split_results(points, work, buffers, backend.of_examples(work.parameters, work.buffers, work.examples))
