"""Faults planted on purpose, by the proofs and never by the suite itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from torch import Tensor

from reference_impls.contract import Algorithm, Sent, Turn
from suite.training import numerics as execution
from suite.training.build import ALGORITHMS


@contextmanager
def wrong_rate(factor: float) -> Iterator[None]:
    """Every algorithm is handed ``factor`` times the learning rate it should have, until the block ends."""

    def plant(kind: type[Algorithm[Any]]) -> Any:
        right = kind.update

        def update(
            self: Algorithm[Any],
            state: Any,
            turn: Turn,
            losses: Tensor,
            gradients: Tensor,
            lr: Tensor,
            sent: Sent = (),
        ) -> Any:
            return right(self, state, turn, losses, gradients, lr * factor, sent)

        return patch.object(kind, "update", update)

    planted = [plant(kind) for kind in ALGORITHMS.values()]
    for each in planted:
        each.start()
    try:
        yield
    finally:
        for each in planted:
            each.stop()


@contextmanager
def other_rounding() -> Iterator[None]:
    """No fault, but sums taken in another order, as on another processor: pictures are laid out channels first."""
    choose = execution.choose
    with patch.object(execution, "choose", lambda *given: choose(*given) | {"channels_last": False}):
        yield
