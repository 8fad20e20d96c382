"""Iterators of turns, and learning rates as a function of the turn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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


def shape_at(schedule: Mapping[str, Any], updates: int, turn: int) -> float:
    """What a schedule multiplies the learning rate by at a turn of a run of ``updates`` turns.

    Args:
        schedule: ``warmup``, turns in which the factor grows linearly to 1; ``cosine``, the factor that it falls to
            at the end along half a cosine. Either may be absent.
        updates: turns of the run.
        turn: number of the turn, from 0.

    Returns:
        The factor; it depends on the turn alone and never starts anew.

    Raises:
        ValueError: the schedule has another key.

    Example:
        >>> [round(shape_at({"warmup": 2, "cosine": 0.0}, 6, turn), 2) for turn in range(6)]
        [0.5, 1.0, 1.0, 0.85, 0.5, 0.15]
    """
    if unknown := set(schedule) - {"warmup", "cosine"}:
        raise ValueError(f"schedule: unknown settings {sorted(unknown)}; known are ['cosine', 'warmup']")
    warmup = schedule.get("warmup", 0)
    if turn < warmup:
        return float((turn + 1) / warmup)
    if "cosine" not in schedule:
        return 1.0
    floor, along = schedule["cosine"], (turn - warmup) / (updates - warmup)
    return float(floor + (1 - floor) * (1 + math.cos(math.pi * along)) / 2)
