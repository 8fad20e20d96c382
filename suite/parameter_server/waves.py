"""Waves: along a schedule known ahead, every gradient that is already determined is computed in one call.

A gradient is determined once the weights it reads exist. Under asynchronous protocols the schedule of the next
updates is known long before their values, so gradients of several future updates can share a call. Gradients that
read the same weights and feed the same update are one job: their batches are joined and their sum is what the
update needs, which is exact unless batch norm couples the examples of a batch (such networks are never joined).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reference_impls.contract import GradientRef, Points, Turn
from reference_impls.numbers import on_device
from suite.parameter_server.protocol import Timed


class GradientJob(NamedTuple):
    """Gradients of one future update that read the same weights."""

    update: int
    read: int
    entries: tuple[GradientRef, ...]


Key = tuple[int, int]  # (update, read) of a job


def jobs_of(turn: Turn) -> list[GradientJob]:
    """The jobs of one update, oldest weights first."""
    groups: dict[int, list[GradientRef]] = {}
    for entry in turn.entries:
        groups.setdefault(entry.read, []).append(entry)
    return [GradientJob(turn.t, read, tuple(groups[read])) for read in sorted(groups)]


class Waves:
    """Iterates over a schedule as (jobs to compute now, virtual seconds, turn to apply).

    ``lookahead`` updates beyond the next are looked at; with 0 each update computes its own gradients. A wave is
    formed only when the next update lacks something, and then takes everything determined. ``ready`` holds the
    jobs handed out whose update has not come yet; give it to a new ``Waves`` to continue a schedule elsewhere.
    """

    def __init__(self, schedule: Iterable[Timed], lookahead: int = 0, ready: Iterable[Key] = ()):
        if lookahead < 0:
            raise ValueError(f"waves: lookahead={lookahead} must not be negative")
        self.schedule, self.lookahead = iter(schedule), lookahead
        self.ready: set[Key] = set(ready)
        self.window: deque[tuple[float, Turn, list[GradientJob]]] = deque()

    def _fill(self) -> None:
        while len(self.window) <= self.lookahead:
            timed = next(self.schedule, None)
            if timed is None:
                return
            self.window.append((*timed, jobs_of(timed[1])))

    def __iter__(self) -> Iterator[tuple[list[GradientJob], float, Turn]]:
        while True:
            self._fill()
            if not self.window:
                return
            seconds, turn, jobs = self.window.popleft()
            wave: list[GradientJob] = []
            if any((job.update, job.read) not in self.ready for job in jobs):
                found = [*jobs, *(job for _, _, later in self.window for job in later)]
                wave = [job for job in found if job.read <= turn.t and (job.update, job.read) not in self.ready]
                wave.sort(key=lambda job: (job.read, job.update))
                self.ready.update((job.update, job.read) for job in wave)
            self.ready.difference_update((job.update, job.read) for job in jobs)
            yield wave, seconds, turn


def wave_turn(t: int, wave: list[GradientJob]) -> Turn:
    """The wave's gradients as one turn, for an algorithm's ``points``: entries in the order of their reads."""
    return Turn(t, tuple(entry for job in wave for entry in job.entries))


def wave_points(found: Points, wave: list[GradientJob]) -> Points:
    """One point per job, out of the points of ``wave_turn``, of which there is one per timestamp."""
    shares = tuple(len(job.entries) for job in wave)
    reads = sorted({job.read for job in wave})
    if len(reads) == len(wave):
        return Points(found.parameters, shares, found.batch)
    place = {read: at for at, read in enumerate(reads)}
    rows = on_device([place[job.read] for job in wave], found.parameters.device)
    return Points(found.parameters[rows], shares, found.batch)
