"""Iterators of turns, and learning rates as a function of the turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reference_impls.contract import Entry, Turn


def rounds(workers: int, *, start: int = 0, first: int = 0, pool: bool = False) -> Iterator[Turn]:
    """Lockstep: at turn t every worker brings one gradient of the newest weights.

    ``pool`` numbers batches over all workers (a shared pool); otherwise each worker reads its own stream.
    ``first`` is the number of the first worker held here.
    """
    t = start
    while True:
        yield Turn(t, tuple(Entry(first + j, t, t * workers + j if pool else t) for j in range(workers)))
        t += 1


def rate_at(base: float, drops: Sequence[tuple[int, float]], turn: int) -> float:
    """Learning rate at a turn: ``base`` times the factor of the last drop (turn, factor) at or before it."""
    factor = 1.0
    for at, value in drops:
        if turn >= at:
            factor = value
    return base * factor
