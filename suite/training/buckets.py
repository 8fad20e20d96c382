"""The buckets in which gradients leave while backward still runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor


class FlatLayout(Protocol):
    """Parameters laid out in one vector."""

    @property
    def x(self) -> Tensor:
        """[d]"""
        ...

    @property
    def segments(self) -> Sequence[slice]:
        """Where each parameter lies in [d], one behind the other."""
        ...


def buckets(flat: FlatLayout, limit: int) -> tuple[slice, ...]:
    """Contiguous buckets of [d] in backward order: neighbouring parameters joined up to ``limit`` bytes.

    A parameter larger than the limit is a bucket by itself; ``limit`` 0 gives one bucket per parameter.
    Raises ValueError for a negative limit.
    """
    if limit < 0:
        raise ValueError(f"bucket_bytes={limit} must not be negative; 0 sends every parameter by itself")
    item = flat.x.element_size()
    parts: list[slice] = []
    for part in reversed(flat.segments):
        if parts and (parts[-1].stop - part.start) * item <= limit:
            parts[-1] = slice(part.start, parts[-1].stop)
        else:
            parts.append(part)
    return tuple(parts)
