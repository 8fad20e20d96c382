"""Shapes of the learning rate as functions of the turn, and buckets in which gradients leave during backward."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from suite.tables import Table, check_options


def warmup_cosine(turn: int, updates: int, warmup: int = 0, cosine: float | None = None) -> float:
    """Growth from 0 to 1 over ``warmup`` turns, then half a cosine down to ``cosine`` at the end; None stays at 1."""
    if turn < warmup:
        return (turn + 1) / warmup
    if cosine is None:
        return 1.0
    along = (turn - warmup) / (updates - warmup)
    return cosine + (1 - cosine) * (1 + math.cos(math.pi * along)) / 2


# Functions of the turn, the turns of the run and their own options that return what multiplies the rate.
SCHEDULES: Table[Callable[..., float]] = Table("schedule", {"warmup-cosine": warmup_cosine})


def shape_at(schedule: Mapping[str, Any], updates: int, turn: int) -> float:
    """What a schedule multiplies the learning rate by at a turn of a run of ``updates`` turns.

    Args:
        schedule: ``name`` in :data:`SCHEDULES`, by default ``warmup-cosine``, and its options.
        updates: turns of the run.
        turn: number of the turn, from 0.

    Returns:
        The factor; it depends on the turn alone and never starts anew.

    Raises:
        ValueError: there is no such schedule, or it has no such option.

    Example:
        >>> [round(shape_at({"warmup": 2, "cosine": 0.0}, 6, turn), 2) for turn in range(6)]
        [0.5, 1.0, 1.0, 0.85, 0.5, 0.15]
    """
    options = dict(schedule)
    factor = SCHEDULES[options.pop("name", "warmup-cosine")]
    check_options("schedule", factor, 2, options)
    return float(factor(turn, updates, **options))


def buckets(segments: Sequence[slice], number: int, limit: int) -> tuple[slice, ...]:
    """Contiguous buckets of [d] in backward order: neighbouring parameters joined up to ``limit`` bytes.

    A parameter larger than the limit is a bucket by itself; ``limit`` 0 gives one bucket per parameter.

    Args:
        segments: where each parameter lies in [d], one behind the other.
        number: bytes of each number.
        limit: bytes of a bucket.
    """
    parts: list[slice] = []
    for part in reversed(segments):
        if parts and (parts[-1].stop - part.start) * number <= limit:
            parts[-1] = slice(part.start, parts[-1].stop)
        else:
            parts.append(part)
    return tuple(parts)
