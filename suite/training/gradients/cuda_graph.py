"""Gradients as one CUDA graph: gather, forward and backward of every row are launched by a single call.

For each number of rows and batch shape a graph is captured once. It reads points, buffers and example indices from
tensors that stay where they are, and its rows are branches on several streams, so that small kernels of independent
replicas run side by side. Nothing waits for the device.

What is captured is a body: a function without arguments that reads and writes such tensors alone, never asks the
device for a value and does the same operations every time. A :class:`Recorder` turns it into a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from suite.training.flat import aligned
from suite.training.gradients.types import Batch, Body, Recorder, Rows

STREAMS = 8  # branches of a graph that may run side by side
KEPT = 8  # graphs of different shapes: each holds a pool of memory of its own
WARM = 3  # calls before the capture: libraries allocate their workspaces in the first ones


class CaptureError(ValueError):
    """What cannot be captured: no CUDA, or a network whose masks are drawn afresh each time."""


class CudaGraphs:
    """CUDA graphs, their branches on ``STREAMS`` streams."""

    def __init__(self) -> None:
        self._streams: list[torch.cuda.Stream] = []

    def record(self, body: Body) -> Body:
        side = torch.cuda.Stream()  # what runs before a capture must not run on the stream that is captured
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM):
                body()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with workspaces_of_its_own(), torch.cuda.graph(graph):
            body()
        return graph.replay

    def side_by_side(self, branches: Sequence[Body]) -> None:
        while len(self._streams) < min(STREAMS, len(branches)):
            self._streams.append(torch.cuda.Stream())
        streams = self._streams[: len(branches)]
        current = torch.cuda.current_stream()
        for stream in streams:
            stream.wait_stream(current)
        for i, branch in enumerate(branches):
            with torch.cuda.stream(streams[i % len(streams)]):
                branch()
        for stream in streams:
            current.wait_stream(stream)


@contextmanager
def workspaces_of_its_own() -> Iterator[None]:
    """Let what is captured inside allocate cuBLAS's workspaces anew, in the memory of its own graph.

    torch keeps one workspace per stream. A graph replays with the address it was captured with, so that a workspace
    that an earlier graph or an ordinary call allocated is freed under it once that graph goes, or when
    ``torch.compile``'s own graphs clear them all: an illegal memory access, or products in memory that others use.
    """
    torch._C._cuda_clearCublasWorkspaces()
    try:
        yield
    finally:
        torch._C._cuda_clearCublasWorkspaces()  # nor may a later graph take this one's


def recorder_of(gradients: Any) -> Recorder | None:
    """What records tests beside these gradients: the recorder they have, or one of their own on a GPU."""
    found: Recorder | None = getattr(gradients, "recorder", None)
    if found is None and refusal(gradients.problem) is None:
        found = CudaGraphs()
    return found


def refusal(problem: Any) -> str | None:
    """Why a problem's gradients cannot be captured on its device, or None."""
    if not hasattr(problem, "flat"):
        return "it is no network"
    if problem.flat.x.device.type != "cuda":
        return f"CUDA graphs need CUDA, and the network lies on {problem.flat.x.device.type}"
    return mask_refusal(problem)


def mask_refusal(problem: Any) -> str | None:
    """Why a network could not be captured on any device, or None."""
    return "dropout's masks are drawn turn by turn" if problem.dropout else None


class Captured:
    """Raises CaptureError when the problem cannot be captured. With a ``recorder`` of its own it needs no CUDA."""

    path = "captured"

    def __init__(self, problem: Any, recorder: Recorder | None = None):
        if why := refusal(problem) if recorder is None else mask_refusal(problem):
            raise CaptureError(f"gradients cannot be captured: {why}; use path looped or vectorised")
        self.problem = problem
        self.recorder: Recorder = recorder or CudaGraphs()
        self._graphs: dict[tuple[Any, ...], Graph] = {}

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        stacked = tuple(torch.stack(parts) for parts in zip(*batches, strict=True))
        return self._graph(points, buffers, stacked, lambda parts: parts).replay(points, buffers, stacked)

    def indexed(self, points: Tensor, buffers: Tensor, examples: Tensor) -> Rows:
        """The same for example indices [n, b]: the gather is part of the graph."""
        graph = self._graph(points, buffers, (examples,), lambda parts: self.problem.fetch(parts[0]))
        return graph.replay(points, buffers, (examples,))

    def _graph(self, points: Tensor, buffers: Tensor, inputs: tuple[Tensor, ...], fetch: Any) -> Graph:
        key = tuple((part.shape, part.dtype) for part in (points, *inputs))
        if key not in self._graphs:
            if len(self._graphs) == KEPT:
                del self._graphs[next(iter(self._graphs))]  # the oldest; its memory goes with it
            rows = RowGradients(self.problem, self.recorder, points, buffers, inputs, fetch)
            self._graphs[key] = Graph(rows, self.recorder.record(rows.compute))
        return self._graphs[key]


class RowGradients:
    """The body: gradients of n rows of fixed shapes, from tensors and into tensors that stay where they are."""

    def __init__(
        self,
        problem: Any,
        recorder: Recorder,
        points: Tensor,
        buffers: Tensor,
        inputs: tuple[Tensor, ...],
        fetch: Callable[[tuple[Tensor, ...]], Batch],
    ):
        self.problem, self.recorder, self.fetch = problem, recorder, fetch
        self.points, self.buffers = points.detach().clone(), buffers.clone()
        self.inputs = tuple(part.clone() for part in inputs)
        self.losses = points.new_empty(len(points))
        self.grads = torch.empty_like(self.points)
        self.after = torch.empty_like(self.buffers)

    def load(self, points: Tensor, buffers: Tensor, inputs: tuple[Tensor, ...]) -> None:
        """Copy in what the next call is to read."""
        self.points.copy_(points)
        self.buffers.copy_(buffers)
        for kept, part in zip(self.inputs, inputs, strict=True):
            kept.copy_(part)

    def compute(self) -> None:
        """All rows, side by side."""
        self.recorder.side_by_side([partial(self.row, i) for i in range(len(self.points))])

    def row(self, i: int) -> None:
        flat = self.problem.flat
        inputs, targets = self.fetch(tuple(part[i] for part in self.inputs))
        point = aligned(self.points[i]).detach()
        leaves = {name: aligned(view).requires_grad_() for name, view in flat.named(point).items()}
        buffers = {name: view.clone() for name, view in flat.named_buffers(self.buffers[i]).items()}
        with self.problem.numerics.forward(self.points.device.type):
            state = {**leaves, **counters(flat.module), **buffers}
            outputs = torch.func.functional_call(flat.module, state, (inputs,))
            loss = self.problem.criterion(outputs, targets)
        flat.flatten(torch.autograd.grad(loss, tuple(leaves.values()), allow_unused=True), self.grads[i])
        self.losses[i] = loss.detach()
        if buffers:
            torch.cat([buffer.detach().reshape(-1) for buffer in buffers.values()], out=self.after[i])


def counters(module: torch.nn.Module) -> dict[str, Tensor]:
    """Copies of a module's integer buffers: batch norm counts in them, and branches must not share a counter."""
    return {name: buffer.clone() for name, buffer in module.named_buffers() if not buffer.is_floating_point()}


class Graph:
    """A body and the call that replays it."""

    def __init__(self, rows: RowGradients, launch: Body):
        self.rows, self.launch = rows, launch

    def replay(self, points: Tensor, buffers: Tensor, inputs: tuple[Tensor, ...]) -> Rows:
        """Losses [n], gradients [n, d], borrowed until the next call, and buffers [n, q]."""
        rows = self.rows
        rows.load(points, buffers, inputs)
        self.launch()
        return rows.losses.clone(), rows.grads, rows.after.clone()
