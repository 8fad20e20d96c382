"""Sides that take turns, and which of them are left out.

Sides take turns, so that a slow spell of the machine falls on all of them alike.

One *round* makes the same number of updates on every side, each round beginning with another side. Samples at the
same index come from the same round. On CUDA the device is waited for before and after each sample.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suite.lazy import torch
from suite.training.numerics import synchronise

Run = Callable[[int], float | None]  # makes so many updates; processor seconds where the side itself must count them


@dataclass(frozen=True)
class Side:
    """One way to do the work. ``threads`` counts all of its processes' threads."""

    run: Run
    threads: int = 1
    execution: Mapping[str, Any] = field(default_factory=dict)  # how ours is executed: path, memory format
    close: Callable[[], None] = lambda: None
    in_process: int = 1  # threads of this process; the rest are other processes'


def timed(side: Side, updates: int, device: str = "cpu") -> tuple[float, float | None]:
    """Wall and processor seconds per update of a side; the latter None where several threads share the work."""
    if torch.get_num_threads() != side.in_process:
        torch.set_num_threads(side.in_process)
    synchronise(device)
    wall, processor = time.perf_counter(), time.thread_time()
    busy = side.run(updates)
    if busy is None and side.threads == 1 and device == "cpu":
        busy = time.thread_time() - processor
    synchronise(device)
    wall = time.perf_counter() - wall
    return wall / updates, None if busy is None else busy / updates


class Alternation:
    """Sides by name, their samples so far, and the number of updates in a sample."""

    def __init__(self, sides: Mapping[str, Side], timer: Callable[[Side, int], tuple[float, float | None]]):
        self.sides, self.timer, self.updates = dict(sides), timer, 1
        self.seconds: dict[str, list[float]] = {name: [] for name in sides}
        self.processor: dict[str, list[float | None]] = {name: [] for name in sides}
        self.warmed: dict[str, float] = {}  # seconds per update when warming up
        self.rounds = 0

    def warm(
        self, block: int, seconds: float, hopeless: Callable[[Mapping[str, float]], Collection[str]]
    ) -> list[str]:
        """Two blocks of updates of every side, of which the second counts; sides that are ``hopeless`` are left out.

        ``hopeless`` names sides by the seconds per update known so far. A side that is so after its first block, ten
        times over, is not given a second. Sets the updates of a sample to as many whole blocks as fill about
        ``seconds`` on the fastest side. Returns the names left out.
        """
        taken = self.warmed
        for name, side in self.sides.items():
            taken[name] = self.timer(side, block)[0]
            if name not in hopeless({**taken, name: taken[name] / 10}):
                taken[name] = self.timer(side, block)[0]
        gone = list(hopeless(taken))
        for name in gone:
            self.sides.pop(name).close()
            del self.seconds[name], self.processor[name]
        quickest = min(taken[name] for name in self.sides)
        self.updates = block * max(1, math.ceil(seconds / (block * max(quickest, 1e-9))))
        return gone

    def round(self) -> None:
        """One sample of every side."""
        names = list(self.sides)
        first = self.rounds % len(names)
        for name in names[first:] + names[:first]:
            wall, busy = self.timer(self.sides[name], self.updates)
            self.seconds[name].append(wall)
            self.processor[name].append(busy)
        self.rounds += 1

    def samples(self) -> dict[str, dict[str, Any]]:
        """The document's ``sides``: samples of equal index are of the same round."""
        return {
            name: {
                "seconds": self.seconds[name],
                "processor": None if None in self.processor[name] else self.processor[name],
                "threads": side.threads,
                **({"execution": dict(side.execution)} if side.execution else {}),
            }
            for name, side in self.sides.items()
        }

    def close(self) -> None:
        """Let go of what the sides hold."""
        for side in self.sides.values():
            side.close()


SAMPLE = 0.02  # seconds that a sample of the fastest side fills at least
# Rounds of a workload. The fastest of several equal sides in three rounds is some percent faster than any of them is.
FEWEST, MOST = 9, 60
LONG = 2.0  # seconds of an update above which a side takes no part, unless it is the fastest of its kind


@dataclass(frozen=True)
class Effort:
    """What to time, and for how long."""

    device: str
    seconds: float  # of all rounds of a workload together, about
    rivals: Collection[str]
    threads: Sequence[int]
    compile_all: bool = False


def hopeless(seconds: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """Entries of sides that take too long to be timed in rounds: the reason, and how many times as long they take.

    The fastest of a kind is never among them.

    A kind is ours, a library's or a plain loop, on so many threads: the strongest that a user could write on the same
    cores is always there to be compared with.
    """
    best: dict[tuple[str, str], str] = {}
    for name in sorted(seconds, key=lambda name: seconds[name]):
        best.setdefault(kind_of(name), name)
    kept = set(best.values())
    found = {}
    for name, taken in seconds.items():
        if taken > LONG and name not in kept:
            least = seconds[best[kind_of(name)]]
            why = f"{taken:.3g} s an update when warmed up; the fastest of its kind takes {least:.3g} s"
            found[name] = {"not_available": why, "times_as_long": round(taken / least, 4)}
    return found


def kind_of(name: str) -> tuple[str, str]:
    """What a side is, and on how many threads: ``plain channels-last, 2 threads`` is a plain loop on two."""
    what, _, threads = name.partition(", ")
    words = what.split()
    return next((kind for kind in ("ours", "compiled", "jax") if kind in words), "plain"), threads


def stolen_percent(before: Any, after: Any) -> float:
    """Of the processors' time between two readings of ``psutil.cpu_times``, what other virtual machines took."""
    passed = sum(after) - sum(before)
    return 100 * (after.steal - before.steal) / passed if passed and hasattr(after, "steal") else 0.0
