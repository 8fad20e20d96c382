"""Testing models: several at once, and no further than a threshold makes necessary.

A test after every update is dearer than the updates. Two things make it affordable: replicas tested in one call, and
partial sums, which settle most comparisons after a few chunks because losses and errors cannot fall below zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.func import vmap
from torch.nn import functional as F

from suite.training.flat import aligned
from suite.training.reading import Reading, read_loss

if TYPE_CHECKING:
    from suite.training.gradients.types import Body, Recorder

METRICS = ("loss", "error")
Decode = Callable[[Tensor], Tensor]
Sums = tuple[Tensor, Tensor]  # of a chunk: losses [n] and wrong answers [n]
Losses = Callable[[Tensor, Tensor, Tensor], Tensor]  # at a point [d], on images with labels: of each example [b]


class Scores(NamedTuple):
    """Of n models."""

    losses: Tensor  # [n] float64, mean loss in nats
    errors: Tensor  # [n] float64, share of images whose largest output is not their class


def scores(
    problem: Any,
    points: Tensor,
    buffers: Tensor,
    inputs: Tensor,
    targets: Tensor,
    *,
    path: str = "looped",
    chunk: int = 500,
    decode: Decode | None = None,
) -> Scores:
    """Loss and error of points [n, d] with buffers [n, q] on images [N, C, H, W] uint8.

    ``path`` looped tests one model after another; vectorised tests all on each chunk, which is decoded once, by the
    problem's transform unless ``decode`` is given. The two agree to rounding. Nothing is read from the device.
    Raises ValueError for another path, or without images. For the captured path see :class:`CapturedTest`.
    """
    if path not in ("looped", "vectorised"):
        raise ValueError(f"a test is looped or vectorised, not {path!r}")
    outputs = _looped(problem) if path == "looped" else _vectorised(problem)

    def tested(images: Tensor, labels: Tensor) -> Sums:
        answers = outputs(points, buffers, decoded(problem, images, decode))  # [n, b, classes]
        losses = torch.stack([F.cross_entropy(answer, labels, reduction="sum") for answer in answers])
        return losses, (answers.argmax(-1) != labels).sum(-1)

    return _over_chunks(problem, tested, points, inputs, targets, chunk)


def read(
    problem: Any,
    point: Tensor,
    buffers: Tensor,
    inputs: Tensor,
    targets: Tensor,
    threshold: float,
    *,
    metric: str = "loss",
    chunk: int = 500,
    decode: Decode | None = None,
) -> Reading:
    """A model's loss or error against a threshold, reading chunks until it is certain to lie above it.

    Whether it lies below is what the whole test says: a sum that exceeds threshold x N can only grow. Reads one
    number per chunk from the device. Raises ValueError for another metric, or without images.
    """
    if metric not in METRICS:
        raise ValueError(f"a test reads one of {METRICS}, not {metric!r}")
    _some(targets)
    outputs = _looped(problem)

    def sums() -> Iterator[tuple[float, int]]:
        for images, labels in zip(inputs.split(chunk), targets.split(chunk), strict=True):
            answer = outputs(point[None], buffers[None], decoded(problem, images, decode))[0]
            if metric == "loss":
                yield F.cross_entropy(answer, labels, reduction="sum").item(), len(labels)
            else:
                yield (answer.argmax(-1) != labels).sum().item(), len(labels)

    with problem.flat.evaluating():
        return read_loss(sums(), len(targets), threshold)


class WorstFirst:
    """Reads the loss of one sample again and again, the examples first that were worst when last looked at.

    Losses are not negative, so that a test may end as soon as their sum exceeds threshold x N, and the worst get
    there soonest. What is decided, and the loss of a whole test, do not depend on the order; how far a test looks
    does. ``last`` [N] holds what the loss of each example was last.
    """

    def __init__(self, losses: Losses, inputs: Tensor, targets: Tensor, chunk: int):
        _some(targets)
        self.losses, self.inputs, self.targets, self.chunk = losses, inputs, targets, chunk
        self.last = torch.zeros(len(targets), dtype=torch.float64)

    def read(self, point: Tensor, threshold: float) -> Reading:
        """The loss at a point [d] against a threshold, as :func:`read` says."""

        def sums() -> Iterator[tuple[float, int]]:
            for rows in self.last.argsort(descending=True, stable=True).split(self.chunk):
                self.last[rows] = found = self.losses(point, self.inputs[rows], self.targets[rows])
                yield found.sum().item(), len(rows)

        reading = read_loss(sums(), len(self.targets), threshold)
        return reading if reading.cut else Reading(self.last.mean().item(), False, reading.examples)


class CapturedTest:
    """Scores of n models whose forward passes on a chunk are one recorded call, side by side.

    Recordings are kept by number of models and shape of a chunk, which the problem's transform decodes unless
    ``decode`` is given.
    """

    def __init__(self, problem: Any, recorder: Recorder, decode: Decode | None = None):
        self.problem, self.recorder, self.decode = problem, recorder, decode
        self._chunks: dict[tuple[Any, ...], tuple[ChunkTest, Body]] = {}

    def scores(self, points: Tensor, buffers: Tensor, inputs: Tensor, targets: Tensor, *, chunk: int = 500) -> Scores:
        """As :func:`scores` says. Nothing is read from the device."""

        def tested(images: Tensor, labels: Tensor) -> Sums:
            key = points.shape, images.shape, images.dtype
            if key not in self._chunks:
                body = ChunkTest(self, points, buffers, images, labels)
                self._chunks[key] = body, self.recorder.record(body.compute)
            body, launch = self._chunks[key]
            body.load(points, buffers, images, labels)
            launch()
            return body.losses, body.wrong

        return _over_chunks(self.problem, tested, points, inputs, targets, chunk)


class ChunkTest:
    """The body of a captured test: n models on one chunk of images."""

    def __init__(self, test: CapturedTest, points: Tensor, buffers: Tensor, images: Tensor, labels: Tensor):
        self.test = test
        self.points, self.buffers = points.detach().clone(), buffers.clone()
        self.images, self.labels = images.clone(), labels.clone()
        self.losses = points.new_zeros(len(points), dtype=torch.float64)
        self.wrong = torch.zeros(len(points), dtype=torch.int64, device=points.device)

    def load(self, *parts: Tensor) -> None:
        """Copy in points, buffers, images and labels."""
        for kept, part in zip((self.points, self.buffers, self.images, self.labels), parts, strict=True):
            kept.copy_(part)

    def compute(self) -> None:
        batch = decoded(self.test.problem, self.images, self.test.decode)

        def one(i: int) -> None:
            answer = functional(self.test.problem, aligned(self.points[i]), self.buffers[i], batch, aligned)
            self.losses[i] = F.cross_entropy(answer, self.labels, reduction="sum")
            self.wrong[i] = (answer.argmax(-1) != self.labels).sum()

        self.test.recorder.side_by_side([partial(one, i) for i in range(len(self.points))])


def decoded(problem: Any, images: Tensor, decode: Decode | None) -> Tensor:
    """What the network reads, channels-last: for batches of a test that is never the slower layout."""
    batch = (decode or problem.transform)(images)
    return batch.contiguous(memory_format=torch.channels_last) if batch.dim() == 4 else batch


def functional(
    problem: Any, point: Tensor, row: Tensor, batch: Tensor, placed: Callable[[Tensor], Tensor] = lambda part: part
) -> Tensor:
    """Outputs [b, classes] of a point [d] with buffers [q], in the point's type.

    ``placed`` says where the network reads each of its tensors.
    """
    flat = problem.flat
    with problem.numerics.forward(batch.device.type):
        tensors = {name: placed(part) for name, part in (flat.named(point) | flat.named_buffers(row)).items()}
        return torch.func.functional_call(flat.module, tensors, (batch,)).to(point.dtype)


def _looped(problem: Any) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """``(points [n, d], buffers [n, q], batch [b, ...]) -> outputs [n, b, classes]``, for the points of one test."""
    flat, loaded = problem.flat, -1

    def outputs(points: Tensor, buffers: Tensor, batch: Tensor) -> Tensor:
        nonlocal loaded
        answers = []
        for i, (point, row) in enumerate(zip(points, buffers, strict=True)):
            if i != loaded:  # a model alone is loaded once for all chunks
                flat.load_for_test(point, row)
                loaded = i
            with problem.numerics.forward(batch.device.type):
                answers.append(flat.module(batch).to(points.dtype))
        return torch.stack(answers)

    return outputs


def _vectorised(problem: Any) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return vmap(lambda point, row, batch: functional(problem, point, row, batch), in_dims=(0, 0, None))


def _over_chunks(
    problem: Any,
    tested: Callable[[Tensor, Tensor], Sums],
    points: Tensor,
    inputs: Tensor,
    targets: Tensor,
    chunk: int,
) -> Scores:
    """Scores of points [n, d] from what ``tested`` says of each chunk's images and labels."""
    _some(targets)
    losses = points.new_zeros(len(points), dtype=torch.float64)
    wrong = torch.zeros(len(points), dtype=torch.int64, device=points.device)
    with problem.flat.evaluating():
        for images, labels in zip(inputs.split(chunk), targets.split(chunk), strict=True):
            more_losses, more_wrong = tested(images, labels)
            losses += more_losses
            wrong += more_wrong
    return Scores(losses / len(targets), wrong.double() / len(targets))


def _some(targets: Tensor) -> None:
    if not len(targets):
        raise ValueError("a test needs at least one image and got none")
