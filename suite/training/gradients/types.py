"""Shapes of gradients and the problem that they belong to, whichever backend computes them."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from suite.training.numerics import Numerics

Batch = tuple[Tensor, ...]
Rows = tuple[Tensor, Tensor, Tensor]  # losses [n], gradients [n, d], buffers [n, q]


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
