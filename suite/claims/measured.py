"""A number of ours, with everything a verdict needs to know about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

KINDS = ("exact", "measured", "simulated", "proxy")


@dataclass(frozen=True)
class Measured:
    """One or several values with intervals.

    ``kind``: *exact* (arithmetic or a deterministic property), *measured* (training or timing at the claim's
    own scale), *simulated* (virtual time, cost model), *proxy* (smaller data or model than the paper's).
    ``n``: independent repetitions behind each value; ``runs``: ids of the stored runs it was read from.
    """

    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    kind: str
    n: int = 1
    runs: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind of evidence must be one of {KINDS}, not {self.kind!r}")
        if not self.values or not len(self.values) == len(self.low) == len(self.high):
            raise ValueError("a measured quantity needs as many bounds as values, and at least one")
        if any(lo > hi for lo, hi in zip(self.low, self.high, strict=True)):
            raise ValueError(f"interval ends out of order: {self.low} .. {self.high}")

    @property
    def finite(self) -> bool:
        return all(math.isfinite(v) for v in (*self.values, *self.low, *self.high))

    @property
    def spans(self) -> tuple[tuple[float, float, float], ...]:
        """Each value with the ends of its interval: (value, low, high)."""
        return tuple(zip(self.values, self.low, self.high, strict=True))


def _tuple(value: float | Iterable[float]) -> tuple[float, ...]:
    return tuple(float(v) for v in value) if isinstance(value, Iterable) else (float(value),)


def exact(value: float | Sequence[float], *, runs: Iterable[str] = (), note: str = "") -> Measured:
    """A value without uncertainty."""
    values = _tuple(value)
    return Measured(values, values, values, "exact", 1, tuple(runs), note)


def point(
    value: float | Sequence[float],
    *,
    kind: str,
    spread: float | Sequence[float] = 0.0,
    n: int = 1,
    runs: Iterable[str] = (),
    note: str = "",
) -> Measured:
    """A value with a symmetric half-width ``spread`` in the value's unit."""
    values = _tuple(value)
    half = _tuple(spread) if isinstance(spread, Iterable) else (float(spread),) * len(values)
    low = tuple(v - h for v, h in zip(values, half, strict=True))
    high = tuple(v + h for v, h in zip(values, half, strict=True))
    return Measured(values, low, high, kind, n, tuple(runs), note)


def interval(
    values: float | Sequence[float],
    low: float | Sequence[float],
    high: float | Sequence[float],
    *,
    kind: str,
    n: int = 1,
    runs: Iterable[str] = (),
    note: str = "",
) -> Measured:
    """Values with the ends of their intervals, as ``statistics`` gives them."""
    return Measured(_tuple(values), _tuple(low), _tuple(high), kind, n, tuple(runs), note)
