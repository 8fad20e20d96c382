"""Seconds, measured ones that count training alone and virtual ones that a cost model charges; counts in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class WallClock:
    """Seconds of training, with evaluation and recording left out.

    ``synchronise`` is called around every pause so that a device's queued work is charged where it belongs.
    """

    def __init__(self, seconds: float = 0.0, synchronise: Callable[[], None] = lambda: None):
        self.spent = seconds  # up to the last pause
        self._synchronise, self._since = synchronise, time.perf_counter()

    @contextmanager
    def paused(self) -> Iterator[float]:
        """Stop the clock; yields the seconds at which it stopped."""
        self._synchronise()
        self.spent += time.perf_counter() - self._since
        try:
            yield self.spent
        finally:
            self._synchronise()
            self._since = time.perf_counter()


@dataclass(frozen=True)
class Link:
    """The alpha-beta model of a connection: a message of s bytes takes latency + s / bandwidth."""

    latency: float  # seconds
    bandwidth: float  # bytes per second

    def seconds(self, size: float) -> float:
        """Time of one message of ``size`` bytes."""
        return self.latency + size / self.bandwidth


def counted(count: int, noun: str) -> str:
    """A count of things that take an s where there are several: ``1 run``, ``2 runs``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def duration(seconds: float) -> str:
    """A time in its two largest units: ``97 d 3 h``, ``2 h 5 min``, ``4 min 30 s``, ``12 s``, ``0.4 s``."""
    if 0 < seconds < 0.95:
        return f"{max(seconds, 0.1):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
