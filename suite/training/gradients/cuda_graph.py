"""Gradients, whole updates and tests as CUDA graphs: everything between two updates is launched by a single call.

For each number of rows and batch shape a graph is captured once. It reads points, buffers and example indices from
tensors that stay where they are, and its rows are branches on several streams, so that small kernels of independent
replicas run side by side. Nothing waits for the device.

On a small network a graph of the gradient leaves the update as most of the launches. There the algorithm's pure
function is captured behind the gradient, and its new state is copied over the old one, so that the next replay
finds it in the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from reference_impls.contract import Algorithm, Points, Turn
from suite.training.evaluation import CapturedTest
from suite.training.flat import aligned
from suite.training.gradients.backend import Backend, Rows, Updated
from suite.training.recording import Body, CudaGraphs, refusal

KEPT = 8  # graphs of different shapes: each holds a pool of memory of its own
WORTH_COPYING = 4_000_000  # parameters above which copying the state is taken to cost more than launching the update


class Captured(Backend):
    """With a ``recorder`` of its own it needs no CUDA."""

    name = "captured"
    one_length = True
    recorder: CudaGraphs

    def __init__(self, problem: Any, recorder: CudaGraphs | None = None):
        super().__init__(problem)
        self.recorder = recorder or CudaGraphs()
        self._graphs: dict[tuple[Any, ...], tuple[RowGradients, Body]] = {}
        self._test = CapturedTest(problem, self.recorder)

    @classmethod
    def refusal(cls, problem: Any) -> str | None:
        return refusal(problem)

    def step(self, algorithm: Algorithm[Any]) -> CapturedUpdate | None:
        """Part of the graph where it does the same at every turn, has no sums of several workers, and is small."""
        fits = not algorithm.reads_turn and algorithm.collective.workers == 1 and self.problem.d <= WORTH_COPYING
        return CapturedUpdate(self, algorithm) if fits else None

    def evaluate(self, x: Tensor, buffers: Tensor, inputs: Tensor, targets: Tensor) -> tuple[float, float]:
        return self._test.score(x, buffers, inputs, targets)

    def indexed(self, points: Tensor, buffers: Tensor, examples: Sequence[Tensor]) -> Rows:
        """The gather is part of the graph."""
        stacked = torch.stack(tuple(examples))  # [n, b]
        key = points.shape, points.dtype, stacked.shape
        if key not in self._graphs:
            if len(self._graphs) == KEPT:
                del self._graphs[next(iter(self._graphs))]  # the oldest; its memory goes with it
            rows = RowGradients(self.problem, self.recorder, points, buffers, stacked)
            self._graphs[key] = rows, self.recorder.record(rows.compute)
        rows, launch = self._graphs[key]
        rows.load(points, buffers, stacked)
        launch()
        return rows.losses.clone(), rows.grads, rows.after.clone()


class RowGradients:
    """The body: gradients of n rows of fixed shapes, from tensors and into tensors that stay where they are."""

    def __init__(self, problem: Any, recorder: CudaGraphs, points: Tensor, buffers: Tensor, examples: Tensor):
        self.problem, self.recorder = problem, recorder
        self.points, self.buffers, self.examples = points.detach().clone(), buffers.clone(), examples.clone()
        self.losses = points.new_empty(len(points))
        self.grads = torch.empty_like(self.points)
        self.after = torch.empty_like(self.buffers)

    def load(self, points: Tensor, buffers: Tensor, examples: Tensor) -> None:
        """Copy in what the next call is to read."""
        self.points.copy_(points)
        self.buffers.copy_(buffers)
        self.examples.copy_(examples)

    def compute(self) -> None:
        """All rows, side by side."""
        self.recorder.side_by_side([partial(self.row, i) for i in range(len(self.points))])

    def row(self, i: int) -> None:
        flat = self.problem.flat
        inputs, targets = self.problem.fetch(self.examples[i])
        point = aligned(self.points[i]).detach()
        leaves = {name: aligned(view).requires_grad_() for name, view in flat.named(point).items()}
        buffers = {name: view.clone() for name, view in flat.named_buffers(self.buffers[i]).items()}
        state = {**leaves, **flat.counters(), **buffers}
        outputs = torch.func.functional_call(flat.module, state, (inputs,))
        loss = self.problem.criterion(outputs, targets)
        flat.flatten(torch.autograd.grad(loss, tuple(leaves.values()), allow_unused=True), self.grads[i])
        self.losses[i] = loss.detach()
        if buffers:
            torch.cat([buffer.detach().reshape(-1) for buffer in buffers.values()], out=self.after[i])


class CapturedUpdate:
    """Updates of one worker. State and buffers that it returns are its own: each call overwrites them."""

    def __init__(self, backend: Captured, algorithm: Algorithm[Any]):
        self.backend, self.algorithm = backend, algorithm
        self.state: Any = None
        self._launch: Body | None = None

    def __call__(
        self, turn: Turn, points: Points, state: Any, buffers: Tensor, examples: Tensor, lr: Tensor
    ) -> Updated:
        """State and buffers [1, q] after the update, and what of it is worth a curve (0-d float64)."""
        if self._launch is None:
            self._record(turn, points, state, buffers, examples, lr)
        assert self._launch is not None
        if state is not self.state:
            overwrite(self.state, state)
        self.rows.load(points.parameters, buffers, examples)
        self.lr.copy_(lr)
        self._launch()
        return self.state, self.rows.after, dict(zip(self.names, self.seen.clone().unbind(), strict=True))

    def _record(self, turn: Turn, points: Points, state: Any, buffers: Tensor, examples: Tensor, lr: Tensor) -> None:
        problem, recorder = self.backend.problem, self.backend.recorder
        self.rows = RowGradients(problem, recorder, points.parameters, buffers, examples)
        self.state, self.lr, self.turn = tree_map(Tensor.clone, state), lr.clone(), turn
        before = tree_map(Tensor.clone, state)  # the body is run a few times before it counts
        self.names = ("loss", *self.algorithm.observe(before, before))
        self.seen = torch.zeros(len(self.names), dtype=torch.float64, device=points.parameters.device)
        self._launch = recorder.record(self._body)
        overwrite(self.state, before)

    def _body(self) -> None:
        rows = self.rows
        rows.compute()
        after = self.algorithm.update(self.state, self.turn, rows.losses, rows.grads, self.lr)
        values = [rows.losses.mean(), *self.algorithm.observe(self.state, after).values()]
        torch.stack([value.double().reshape(()) for value in values], out=self.seen)
        overwrite(self.state, after)


def overwrite(kept: Any, state: Any) -> None:
    """Copy a state over another that stays where it is, also where the new one holds parts of the old one."""
    old, new = tree_leaves(kept), tree_leaves(state)
    places = {tensor.untyped_storage().data_ptr() for tensor in old}
    safe = [part.clone() if part.untyped_storage().data_ptr() in places else part for part in new]
    for mine, part in zip(old, safe, strict=True):
        mine.copy_(part)
