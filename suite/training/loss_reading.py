"""A loss read against a threshold, from chunks of a test and no longer than needed to decide."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class LossReading(NamedTuple):
    """A test. ``loss`` is the mean over all examples or, if ``cut``, a lower bound of it above the threshold."""

    loss: float
    cut: bool
    examples: int  # looked at


def read_loss(chunks: Iterable[tuple[float, int]], examples: int, threshold: float) -> LossReading:
    """The mean of ``examples`` losses from (sum, count) of consecutive chunks, given up above ``threshold``.

    Chunks are consumed only as far as needed. NaN counts as infinite. Raises ValueError for a negative sum,
    which would make the early exit wrong.
    """
    total, seen, limit = 0.0, 0, threshold * examples
    for part, count in chunks:
        if part < 0:
            raise ValueError(f"a chunk of {count} losses sums to {part}; an early exit needs losses of at least 0")
        total += part
        seen += count
        if math.isnan(total):
            return LossReading(math.inf, True, seen)
        if total > limit and seen < examples:
            return LossReading(total / examples, True, seen)
    return LossReading(total / examples, False, seen)
