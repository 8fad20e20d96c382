"""A whole update as one CUDA graph: gather, gradient and the algorithm's own ``update``.

On a small network a graph of the gradient leaves the update as most of the launches. Here the algorithm's pure
function is captured behind the gradient, and its new state is copied over the old one, so that the next replay
finds it in the same place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from reference_impls.contract import Algorithm, Points, Turn
from suite.training.gradients.cuda_graph import Captured, RowGradients
from suite.training.gradients.types import Body, Gradients

WORTH_COPYING = 4_000_000  # parameters above which copying the state is taken to cost more than launching the update


def refusal(algorithm: Algorithm[Any], d: int) -> str | None:
    """Why an algorithm's update cannot be, or is not worth being, part of the graph; None if it is."""
    if algorithm.reads_turn:
        return "what it does depends on the number of the turn"
    if algorithm.collective.workers > 1:
        return "the gradients of several workers are summed outside"
    if d > WORTH_COPYING:
        return f"copying a state of {d:,} parameters costs more than the launches it saves"
    return None


def whole_update(gradients: Gradients, algorithm: Algorithm[Any]) -> CapturedUpdate | None:
    """The captured update of one worker where the gradients are captured and nothing refuses it."""
    if not isinstance(gradients, Captured) or refusal(algorithm, gradients.problem.d):
        return None
    return CapturedUpdate(gradients, algorithm)


class CapturedUpdate:
    """Updates of one worker. State and buffers that it returns are its own: each call overwrites them."""

    def __init__(self, gradients: Captured, algorithm: Algorithm[Any]):
        self.gradients, self.algorithm = gradients, algorithm
        self.state: Any = None
        self._launch: Body | None = None

    def __call__(
        self, turn: Turn, points: Points, state: Any, buffers: Tensor, examples: Tensor, lr: Tensor
    ) -> tuple[Any, Tensor, dict[str, Tensor]]:
        """State and buffers [1, q] after the update, and what of it is worth a curve (0-d float64)."""
        if self._launch is None:
            self._record(turn, points, state, buffers, examples, lr)
        assert self._launch is not None
        if state is not self.state:
            overwrite(self.state, state)
        self.rows.load(points.parameters, buffers, (examples,))
        self.lr.copy_(lr)
        self._launch()
        return self.state, self.rows.after, dict(zip(self.names, self.seen.clone().unbind(), strict=True))

    def _record(self, turn: Turn, points: Points, state: Any, buffers: Tensor, examples: Tensor, lr: Tensor) -> None:
        problem = self.gradients.problem
        recorder = self.gradients.recorder
        fetch = lambda parts: problem.fetch(parts[0])
        self.rows = RowGradients(problem, recorder, points.parameters, buffers, (examples,), fetch)
        self.state, self.lr, self.turn = rebuilt(state, Tensor.clone), lr.clone(), turn
        before = rebuilt(state, Tensor.clone)  # the body is run a few times before it counts
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


def leaves(state: Any) -> Iterator[Tensor]:
    """The tensors of a state: NamedTuples and tuples of tensors."""
    if isinstance(state, Tensor):
        yield state
    else:
        for part in state:
            yield from leaves(part)


def rebuilt(state: Any, change: Any) -> Any:
    """A state of the same form with every tensor changed."""
    if isinstance(state, Tensor):
        return change(state)
    parts = [rebuilt(part, change) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def overwrite(kept: Any, state: Any) -> None:
    """Copy a state over another that stays where it is, also where the new one holds parts of the old one."""
    old, new = list(leaves(kept)), list(leaves(state))
    places = {tensor.untyped_storage().data_ptr() for tensor in old}
    safe = [part.clone() if part.untyped_storage().data_ptr() in places else part for part in new]
    for mine, part in zip(old, safe, strict=True):
        mine.copy_(part)
