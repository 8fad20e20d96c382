"""A device that computes by sleeping, for processes that exchange what is really there."""

from __future__ import annotations

import time


class Device:
    """Computes by sleeping, one piece after another from the beginning of an update on.

    A process that wakes up late does not delay the pieces that follow, as the host of a GPU does not.
    """

    def __init__(self) -> None:
        self._free = 0.0

    def begin(self) -> None:
        """An update begins now, or when the last one has been computed."""
        self._free = max(self._free, time.monotonic())

    def compute(self, seconds: float) -> None:
        self._free += seconds
        time.sleep(max(0.0, self._free - time.monotonic()))
