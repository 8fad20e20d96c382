"""What gradients are asked for and how they come back, whichever way they are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import Tensor

from suite.training.numerics import Numerics

Batch = tuple[Tensor, ...]
Rows = tuple[Tensor, Tensor, Tensor]  # losses [n], gradients [n, d], buffers [n, q]
Body = Callable[[], None]


class Problem(Protocol):
    """``fetch`` turns example indices [b] into a batch; ``loss`` is the mean loss of a batch at a point."""

    d: int
    q: int
    batch_norm: bool
    dropout: bool
    numerics: Numerics

    def b0(self) -> Tensor: ...

    def fetch(self, examples: Tensor) -> Batch: ...

    def loss(self, x: Tensor, buffers: Tensor, batch: Batch) -> tuple[Tensor, Tensor]: ...


class Gradients(Protocol):
    """Results are borrowed: valid until the next call."""

    path: str
    problem: Any

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows: ...


class Recorder(Protocol):
    """Makes a call out of a body, which it may run several times before."""

    def record(self, body: Body) -> Body:
        """A call that does what the body does, with the tensors that the body holds."""
        ...

    def side_by_side(self, branches: Sequence[Body]) -> None:
        """Run branches that touch nothing in common; what follows may use what they wrote. Used inside a body."""
        ...
