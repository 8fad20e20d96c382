"""Testing models: several at once, and no further than a threshold makes necessary.

A test after every update is dearer than the updates. Two things make it affordable: replicas tested in one call, and
partial sums, which settle most comparisons after a few chunks because losses and errors cannot fall below zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import vmap
from torch.nn import functional as F

from suite.execution import lowered

METRICS = ("loss", "error")


class Scores(NamedTuple):
    """Of n models."""

    losses: Tensor  # [n] float64, mean loss in nats
    errors: Tensor  # [n] float64, share of images whose largest output is not their class


class Reading(NamedTuple):
    """A test against a threshold."""

    below: bool
    value: float  # the mean over all images; where the test was cut short, what it is at least
    examples: int  # images read


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """The module in evaluation mode, without gradients."""
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(was_training)


def scores(
    problem: Any,
    points: Tensor,
    buffers: Tensor,
    inputs: Tensor,
    targets: Tensor,
    *,
    path: str = "looped",
    chunk: int = 500,
) -> Scores:
    """Loss and error of points [n, d] with buffers [n, q] on images [N, C, H, W] uint8.

    ``path`` looped tests one model after another; vectorised tests all on each chunk, which is decoded once. The two
    agree to rounding. Nothing is read from the device. Raises ValueError for another path, or without images.
    """
    if path not in ("looped", "vectorised"):
        raise ValueError(f"a test is looped or vectorised, not {path!r}")
    if not len(targets):
        raise ValueError("a test needs at least one image and got none")
    n = len(points)
    losses = points.new_zeros(n, dtype=torch.float64)
    wrong = torch.zeros(n, dtype=torch.int64, device=points.device)
    outputs = _outputs(problem, path)
    with evaluating(problem.flat.module):
        for images, labels in zip(inputs.split(chunk), targets.split(chunk), strict=True):
            answers = outputs(points, buffers, _decoded(problem, images))  # [n, b, classes]
            for i, answer in enumerate(answers):
                losses[i] += F.cross_entropy(answer, labels, reduction="sum")
            wrong += (answers.argmax(-1) != labels).sum(-1)
    return Scores(losses / len(targets), wrong.double() / len(targets))


def below(
    problem: Any,
    point: Tensor,
    buffers: Tensor,
    inputs: Tensor,
    targets: Tensor,
    threshold: float,
    *,
    metric: str = "loss",
    chunk: int = 500,
) -> Reading:
    """Whether a model's loss or error is below ``threshold``, reading chunks until that is certain.

    The answer is that of the whole test: a sum that has reached threshold x N can only grow. Reads one number per
    chunk from the device. Raises ValueError for another metric, or without images.
    """
    if metric not in METRICS:
        raise ValueError(f"a test reads one of {METRICS}, not {metric!r}")
    if not len(targets):
        raise ValueError("a test needs at least one image and got none")
    total, read, count = 0.0, 0, len(targets)
    outputs = _outputs(problem, "looped")
    with evaluating(problem.flat.module):
        for images, labels in zip(inputs.split(chunk), targets.split(chunk), strict=True):
            answer = outputs(point[None], buffers[None], _decoded(problem, images))[0]
            if metric == "loss":
                total += F.cross_entropy(answer, labels, reduction="sum").item()
            else:
                total += (answer.argmax(-1) != labels).sum().item()
            read += len(labels)
            if not total < threshold * count:  # also where a loss is NaN
                return Reading(False, total / count, read)
    return Reading(True, total / count, read)


def _decoded(problem: Any, images: Tensor) -> Tensor:
    batch = problem.transform(images)
    if problem.flat.channels_last and batch.dim() == 4:
        batch = batch.contiguous(memory_format=torch.channels_last)
    return batch


def _outputs(problem: Any, path: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """``(points [n, d], buffers [n, q], batch [b, ...]) -> outputs [n, b, classes]`` in evaluation mode."""
    flat = problem.flat

    def looped(points: Tensor, buffers: Tensor, batch: Tensor) -> Tensor:
        saved = flat.buffers.clone()
        answers = []
        for point, row in zip(points, buffers, strict=True):
            flat.load(point, row)
            with lowered(batch.device.type):
                answers.append(flat.module(batch).to(points.dtype))
        flat.buffers.copy_(saved)
        return torch.stack(answers)

    def one(point: Tensor, row: Tensor, batch: Tensor) -> Tensor:
        tensors = {**flat.named(point), **flat.named_buffers(row)}
        with lowered(batch.device.type):
            return torch.func.functional_call(flat.module, tensors, (batch,)).to(point.dtype)

    return looped if path == "looped" else vmap(one, in_dims=(0, 0, None))
