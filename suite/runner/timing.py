"""Ways to do the same work, timed in turns, and which of them is worth taking."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from statistics import median
from typing import TypeVar

from suite.experiment import OutOfTime

Name = TypeVar("Name", bound=Hashable)
SHORT = 10  # spells of rest
_late: ContextVar[Callable[[], bool]] = ContextVar("late", default=lambda: False)


@contextlib.contextmanager
def until(late: Callable[[], bool]) -> Iterator[None]:
    """Within this block a measurement is given up between two of its pieces once ``late`` holds."""
    token = _late.set(late)
    try:
        yield
    finally:
        _late.reset(token)


def leave_if_late() -> None:
    """Raise OutOfTime where the time that ``until`` gave is over."""
    if _late.get()():
        raise OutOfTime


def alternating(
    sides: Mapping[Name, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
    rest: float = 0.0,
) -> dict[Name, list[float]]:
    """Seconds of each side, measured in turns so that slow drifts of the machine hit all alike.

    One warm-up of each is left out. Every side must return only when its work is done (a GPU synchronised).
    Threads of a framework turn round for some milliseconds after their work and take the core from whoever comes
    next: with ``rest`` a side that is done within ``SHORT`` such spells first waits one and makes a call untimed.
    Raises ValueError for fewer than one repeat, and OutOfTime within ``until``.
    """
    if repeats < 1:
        raise ValueError(f"repeats={repeats} must be at least 1")
    found: dict[Name, list[float]] = {name: [] for name in sides}
    taken = dict.fromkeys(sides, 0.0)  # by the latest call
    for repeat in range(-1, repeats):
        for name, side in sides.items():
            if taken[name] < SHORT * rest:
                time.sleep(rest)
                side()
            start = clock()
            side()
            taken[name] = clock() - start
            if repeat >= 0:
                found[name].append(taken[name])
            leave_if_late()
    return found


def preferred(
    seconds: Mapping[Name, Sequence[float]], simple: Name, margin: float = 0.05, steady: float | None = None
) -> Name:
    """The name with the least median time, unless ``simple`` is within ``margin`` of it (a share of its time).

    ``steady`` is the margin where the other was faster in every repeat; values of the same place were taken in the
    same turn. None: the same margin. Raises ValueError if ``simple`` was not measured.
    """
    if simple not in seconds:
        raise ValueError(f"{simple!r} was not measured; there are {list(seconds)}")
    middle = {name: median(row) for name, row in seconds.items()}
    best = min(middle, key=lambda name: middle[name])
    if steady is not None and all(a < b for a, b in zip(seconds[best], seconds[simple], strict=True)):
        margin = steady
    return simple if middle[best] > middle[simple] * (1 - margin) else best
