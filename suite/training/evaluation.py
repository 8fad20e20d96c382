"""Tests of a model, no further than a threshold makes necessary.

A test after every update is dearer than the updates. Partial sums settle most comparisons after a few chunks, because
losses cannot fall below zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from suite.training.flat import aligned, arranged
from suite.training.loss_reading import LossReading, read_loss
from suite.training.recording import Body, CudaGraphs

Score = tuple[float, float]  # mean loss in nats, share of images whose largest output is not their class
Sums = tuple[Tensor, Tensor]  # of a chunk: loss and wrong answers (0-d)
Losses = Callable[[Tensor, Tensor, Tensor], Tensor]  # at a point [d], on images with labels: of each example [b]


def score(
    problem: Any,
    x: Tensor,
    buffers: Tensor,
    inputs: Tensor,
    targets: Tensor,
    *,
    chunk: int = 500,
) -> Score:
    """Mean loss (nats) and error of a point [d] with buffers [q] on images [N, C, H, W] uint8, in evaluation mode.

    Nothing is read from the device before the end. Images are read channels-last, which for those of a test is never
    the slower layout.

    Raises:
        ValueError: There is no image.
    """
    with problem.flat.evaluating():
        problem.flat.load_for_test(x, buffers)
        tested = lambda images, labels: sums_of(problem.flat.module(arranged(problem.transform(images))), labels)
        return _over_chunks(tested, inputs, targets, chunk)


def read(
    problem: Any,
    x: Tensor,
    buffers: Tensor,
    threshold: float,
    inputs: Tensor,
    targets: Tensor,
    *,
    chunk: int = 500,
) -> LossReading:
    """A model's loss on decoded inputs against a threshold, reading chunks until it is certain to lie above it.

    A sum that exceeds threshold x N can only grow, so the decision is that of the whole test. One number per chunk is
    read from the device.

    """
    with problem.flat.evaluating():
        problem.flat.load_for_test(x, buffers)
        sums = (
            (F.cross_entropy(problem.flat.module(arranged(images)), labels, reduction="sum").item(), labels.numel())
            for images, labels in zip(inputs.split(chunk), targets.split(chunk), strict=True)
        )
        return read_loss(sums, targets.numel(), threshold)


class WorstFirst:
    """Reads the loss of one sample again and again, the examples first that were worst when last looked at.

    Losses are not negative, so that a test may end as soon as their sum exceeds threshold x N, and the worst get
    there soonest. What is decided, and the loss of a whole test, do not depend on the order; how far a test looks
    does. ``last`` [N] holds what the loss of each example was last.
    """

    def __init__(self, losses: Losses, inputs: Tensor, targets: Tensor, chunk: int):
        self.losses, self.inputs, self.targets, self.chunk = losses, inputs, targets, chunk
        self.last = torch.zeros(len(targets), dtype=torch.float64)

    def read(self, point: Tensor, buffers: Tensor, threshold: float) -> LossReading:
        """The loss at a point [d] against a threshold, as :func:`read` says. There are no buffers."""

        def sums() -> Iterator[tuple[float, int]]:
            for rows in self.last.argsort(descending=True, stable=True).split(self.chunk):
                self.last[rows] = found = self.losses(point, self.inputs[rows], self.targets[rows])
                yield found.sum().item(), len(rows)

        reading = read_loss(sums(), len(self.targets), threshold)
        return reading if reading.cut else LossReading(self.last.mean().item(), False, reading.examples)


class CapturedTest:
    """The test whose forward pass on a chunk is one recorded call, kept by the shape of a chunk.

    The problem's transform decodes images; they are taken as they are where they are ``decoded`` already.
    """

    def __init__(self, problem: Any, recorder: CudaGraphs, decoded: bool = False):
        self.problem, self.recorder, self.decoded = problem, recorder, decoded
        self._chunks: dict[tuple[Any, ...], tuple[ChunkTest, Body]] = {}

    def score(self, x: Tensor, buffers: Tensor, inputs: Tensor, targets: Tensor, *, chunk: int = 500) -> Score:
        """As :func:`score` says."""

        def tested(images: Tensor, labels: Tensor) -> Sums:
            key = images.shape, images.dtype
            if key not in self._chunks:
                body = ChunkTest(self, x, buffers, images, labels)
                self._chunks[key] = body, self.recorder.record(body.compute)
            body, launch = self._chunks[key]
            body.load(x, buffers, images, labels)
            launch()
            return body.loss, body.wrong

        with self.problem.flat.evaluating():
            return _over_chunks(tested, inputs, targets, chunk)

    def read(
        self, x: Tensor, buffers: Tensor, threshold: float, inputs: Tensor, targets: Tensor, chunk: int
    ) -> LossReading:
        """The loss, all of it, against a threshold."""
        loss, _ = self.score(x, buffers, inputs, targets, chunk=chunk)
        return read_loss([(loss * targets.numel(), targets.numel())], targets.numel(), threshold)


class ChunkTest:
    """The body of a captured test: a model on one chunk of images, in tensors that stay where they are."""

    def __init__(self, test: CapturedTest, *parts: Tensor):
        self.test = test
        self.parts = [part.detach().clone() for part in parts]  # point [d], buffers [q], images, labels
        self.loss = parts[0].new_zeros((), dtype=torch.float64)
        self.wrong = torch.zeros((), dtype=torch.int64, device=parts[0].device)

    def load(self, *parts: Tensor) -> None:
        """Copy in point, buffers, images and labels."""
        for held, part in zip(self.parts, parts, strict=True):
            held.copy_(part)

    def compute(self) -> None:
        problem, (x, buffers, images, labels) = self.test.problem, self.parts
        batch, flat = arranged(images if self.test.decoded else problem.transform(images)), problem.flat
        named = {name: aligned(part) for name, part in (flat.named(x) | flat.named_buffers(buffers)).items()}
        outputs = torch.func.functional_call(flat.module, named, (batch,))
        for held, found in zip((self.loss, self.wrong), sums_of(outputs, labels), strict=True):
            held.copy_(found)


def sums_of(outputs: Tensor, labels: Tensor) -> Sums:
    """Loss and wrong answers of outputs [b, classes, ...] with labels [b, ...]."""
    return F.cross_entropy(outputs, labels, reduction="sum"), (outputs.argmax(1) != labels).sum()


def _over_chunks(tested: Callable[[Tensor, Tensor], Sums], inputs: Tensor, targets: Tensor, chunk: int) -> Score:
    """Mean loss and error from what ``tested`` says of each chunk's images and labels."""
    if not len(targets):
        raise ValueError("a test needs at least one image and got none")
    loss = torch.zeros((), dtype=torch.float64, device=targets.device)
    wrong = torch.zeros((), dtype=torch.int64, device=targets.device)
    for images, labels in zip(inputs.split(chunk), targets.split(chunk), strict=True):
        more_loss, more_wrong = tested(images, labels)
        loss += more_loss
        wrong += more_wrong
    return loss.item() / targets.numel(), wrong.item() / targets.numel()
