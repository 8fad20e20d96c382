"""Gradients as one CUDA graph: gather, forward and backward of every row are launched by a single call.

For each number of rows and batch shape a graph is captured once. It reads points, buffers and example indices from
tensors that stay where they are, and its rows are branches on several streams, so that small kernels of independent
replicas run side by side. Nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from suite.execution import lowered
from suite.gradients import Rows
from suite.problems import Batch

STREAMS = 8  # branches of a graph that may run side by side
WARM = 3  # calls before the capture: libraries allocate their workspaces in the first ones


class CaptureError(ValueError):
    """Gradients that cannot be captured: no CUDA, or a network whose masks are drawn afresh each time."""


def refusal(problem: Any) -> str | None:
    """Why a problem's gradients cannot be captured, or None."""
    if not hasattr(problem, "flat"):
        return "it is no network"
    if problem.flat.x.device.type != "cuda":
        return f"CUDA graphs need CUDA, and the network lies on {problem.flat.x.device.type}"
    if problem.dropout:
        return "dropout's masks are drawn turn by turn"
    return None


class Captured:
    """Raises CaptureError when the problem cannot be captured."""

    path = "captured"

    def __init__(self, problem: Any):
        if why := refusal(problem):
            raise CaptureError(f"gradients cannot be captured: {why}; use path looped or vectorised")
        self.problem = problem
        self._graphs: dict[tuple[Any, ...], Graph] = {}

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        stacked = tuple(torch.stack(parts) for parts in zip(*batches, strict=True))
        return self._replay(points, buffers, stacked, lambda parts: parts)

    def indexed(self, points: Tensor, buffers: Tensor, examples: Tensor) -> Rows:
        """The same for example indices [n, b]: the gather is part of the graph."""
        return self._replay(points, buffers, (examples,), lambda parts: self.problem.fetch(parts[0]))

    def _replay(self, points: Tensor, buffers: Tensor, inputs: tuple[Tensor, ...], fetch: Any) -> Rows:
        key = tuple((part.shape, part.dtype) for part in (points, *inputs))
        if key not in self._graphs:
            self._graphs[key] = Graph(self.problem, points, buffers, inputs, fetch)
        return self._graphs[key].replay(points, buffers, inputs)


class Graph:
    """A captured call for n rows of fixed shapes."""

    def __init__(self, problem: Any, points: Tensor, buffers: Tensor, inputs: tuple[Tensor, ...], fetch: Any):
        self.problem, self.fetch = problem, fetch
        self.points, self.buffers = points.detach().clone(), buffers.clone()
        self.inputs = tuple(part.clone() for part in inputs)
        self.losses = points.new_empty(len(points))
        self.grads = torch.empty_like(self.points)
        self.after = torch.empty_like(self.buffers)
        self.streams = [torch.cuda.Stream() for _ in range(min(STREAMS, len(points)))]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM):
                self.compute()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.compute()

    def replay(self, points: Tensor, buffers: Tensor, inputs: tuple[Tensor, ...]) -> Rows:
        self.points.copy_(points)
        self.buffers.copy_(buffers)
        for kept, part in zip(self.inputs, inputs, strict=True):
            kept.copy_(part)
        self.graph.replay()
        return self.losses, self.grads, self.after.clone()  # buffers outlive the next call, the rest is borrowed

    def compute(self) -> None:
        """All rows, each on the stream whose turn it is; the current stream waits for them."""
        current = torch.cuda.current_stream()
        for stream in self.streams:
            stream.wait_stream(current)
        for i in range(len(self.points)):
            with torch.cuda.stream(self.streams[i % len(self.streams)]):
                self.row(i)
        for stream in self.streams:
            current.wait_stream(stream)

    def row(self, i: int) -> None:
        flat = self.problem.flat
        inputs, targets = self.fetch(tuple(part[i] for part in self.inputs))
        leaves = {name: view.detach().requires_grad_() for name, view in flat.named(self.points[i]).items()}
        buffers = {name: view.clone() for name, view in flat.named_buffers(self.buffers[i]).items()}
        with lowered("cuda"):
            outputs = torch.func.functional_call(flat.module, {**leaves, **buffers}, (inputs,))
            loss = self.problem.criterion(outputs, targets)
        flat.flatten(torch.autograd.grad(loss, tuple(leaves.values()), allow_unused=True), self.grads[i])
        self.losses[i] = loss.detach()
        if buffers:
            torch.cat([buffer.detach().reshape(-1) for buffer in buffers.values()], out=self.after[i])
