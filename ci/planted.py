"""Faults planted on purpose, by the proofs and never by the suite itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from suite.algorithms import ALGORITHMS, algorithm
from suite.training import numerics as execution


@contextmanager
def wrong_rate(factor: float) -> Iterator[None]:
    """Every algorithm is told ``factor`` times the learning rate it should have, until the block ends."""

    def tell(right: Any, *arguments: Any, lr: Any, **named: Any) -> Any:
        return right(*arguments, lr=lr * factor, **named)

    modules = [algorithm(name) for name in ALGORITHMS]
    planted = [patch.object(module, "tell", partial(tell, module.tell)) for module in modules]
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
