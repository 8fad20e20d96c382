"""Estimates as tests write them down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from suite.claims.estimate import Estimate


def several(value: float | Iterable[float]) -> tuple[float, ...]:
    return tuple(map(float, value)) if isinstance(value, Iterable) else (float(value),)


def point(value: float | Iterable[float], *, spread: float | Iterable[float] = 0.0, **about: Any) -> Estimate:
    """A value with a symmetric half-width in its unit."""
    values, half = several(value), several(spread)
    half = half * len(values) if len(half) == 1 else half
    low = [v - h for v, h in zip(values, half, strict=True)]
    return interval(values, low, [v + h for v, h in zip(values, half, strict=True)], **about)


def interval(value: Any, low: Any, high: Any, **about: Any) -> Estimate:
    """Values with the ends of their intervals."""
    return Estimate(several(value), several(low), several(high), **about)
