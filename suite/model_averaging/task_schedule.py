"""Learning and synchronisation tasks on streams, in virtual time (Crossbow, sections 4.2-4.3, Fig. 8).

Each learner owns a replica and a stream. In every iteration it runs a learning task (a batch and the replica ->
gradient) and then a local synchronisation task (replica against central average model). A global synchronisation
task per device, on a stream of its own, aggregates the local differences. What waits for what:

    learn(i, j)   its replica and stream: after local(i - 1, j); and the scheduler's hand, see below
    local(i, j)   after learn(i, j), and after global(i - 1) on all devices: it reads the average model
    global(i, g)  after local(i, .) of all learners, since the all-reduce joins all devices

so global(i) runs alongside learn(i + 1). The scheduler hands out batches in order. *First come, first served*
gives the next batch to the replica that came free first; *round robin* gives it to replica n mod k, for which
everything behind it waits. :class:`Scheduler` holds these rules; :func:`schedule` plays it in virtual time, and
:class:`suite.model_averaging.engine.Engine` runs what it names.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple

Policy = Literal["first-come", "round-robin"]
Kind = Literal["learn", "local", "global"]


@dataclass(frozen=True)
class Task:
    """One task as it ran. Times in seconds; ``learner`` and ``batch`` are -1 where there is none."""

    kind: Kind
    iteration: int
    device: int
    stream: str
    learner: int
    batch: int
    start: float
    end: float


@dataclass(frozen=True)
class Durations:
    """Seconds of each task; ``learn(batch)`` may differ from batch to batch."""

    learn: Callable[[int], float]
    local: float
    overall: float  # of a global synchronisation task

    def of(self, task: Ready) -> float:
        if task.kind == "learn":
            return self.learn(task.batch)
        return self.local if task.kind == "local" else self.overall


class Ready(NamedTuple):
    """A task whose dependencies are met; ``learner`` and ``batch`` are -1 where there is none."""

    kind: Kind
    iteration: int
    learner: int = -1
    batch: int = -1


class Scheduler:
    """Names the task to run next, in integers; whoever runs it says when it is done.

    Every iteration holds one learning task per replica. Without ``overlap`` a replica returns to the pool when the
    global task of its iteration is done, which is a barrier between iterations.
    Raises ValueError for an unknown policy or sizes below 1.
    """

    def __init__(self, learners: int, iterations: int, policy: Policy = "first-come", *, overlap: bool = True):
        if policy not in ("first-come", "round-robin") or min(learners, iterations) < 1:
            raise ValueError(
                f"policy={policy!r} must be 'first-come' or 'round-robin', and iterations={iterations} and "
                f"learners={learners} at least 1"
            )
        self.learners, self.iterations, self.policy, self.overlap = learners, iterations, policy, overlap
        self.pool = deque(range(learners))  # replicas that are free, in the order in which they came
        self.learned: list[Ready] = []  # learning tasks that are done, whose local ones have not begun
        self.batch = 0  # that is handed out next
        self.corrected = 0  # local tasks done since the last global one began
        self.averaged = 0  # global tasks done

    @property
    def finished(self) -> bool:
        return self.averaged == self.iterations

    def next(self) -> Ready | None:
        """A task to run now; None where every one that is left waits for another."""
        if self.corrected == self.learners:
            self.corrected = 0
            return Ready("global", self.averaged)
        for task in self.learned:
            if task.iteration <= self.averaged:
                self.learned.remove(task)
                return Ready("local", task.iteration, task.learner)
        iteration, place = divmod(self.batch, self.learners)
        if iteration == self.iterations or not self.pool:
            return None
        learner = self.pool[0] if self.policy == "first-come" else place
        if learner not in self.pool:
            return None
        self.pool.remove(learner)
        self.batch += 1
        return Ready("learn", iteration, learner, self.batch - 1)

    def done(self, task: Ready) -> None:
        """A task that was named has run."""
        if task.kind == "learn":
            self.learned.append(task)
        elif task.kind == "local":
            self.corrected += 1
            if self.overlap:
                self.pool.append(task.learner)
        else:
            self.averaged += 1
            if not self.overlap:
                self.pool.extend(range(self.learners))


def schedule(
    iterations: int, devices: int, learners: int, durations: Durations, policy: Policy = "first-come"
) -> list[Task]:
    """All tasks of ``iterations`` iterations with ``learners`` learners on each device, in order of start.

    Raises ValueError for an unknown policy or sizes below 1.
    """
    scheduler = Scheduler(devices * learners, iterations, policy)
    tasks: list[Task] = []
    running: list[tuple[float, int, int, Ready]] = []  # end, learner, a serial number
    now, serial = 0.0, count()
    while not scheduler.finished:
        while task := scheduler.next():
            end = now + durations.of(task)
            heapq.heappush(running, (end, task.learner, next(serial), task))
            tasks += recorded(task, now, end, learners, devices)
        now, _, _, task = heapq.heappop(running)
        scheduler.done(task)
    return sorted(tasks, key=lambda task: (task.start, task.stream))


def recorded(task: Ready, start: float, end: float, learners: int, devices: int = 1) -> list[Task]:
    """A task as it ran; a global one on every device. ``learners`` are those of one device."""
    if task.kind == "global":
        streams = [(device, f"synchronisation {device}") for device in range(devices)]
    else:
        streams = [(task.learner // learners, f"learner {task.learner}")]
    return [Task(task.kind, task.iteration, at, name, task.learner, task.batch, start, end) for at, name in streams]


def idle_seconds(tasks: list[Task]) -> float:
    """Stream-seconds in which a learner's stream waits, from the start to the end of all its tasks."""
    streams: dict[str, list[Task]] = {}
    for task in tasks:
        if task.learner >= 0:
            streams.setdefault(task.stream, []).append(task)
    horizon = max(task.end for row in streams.values() for task in row)
    return sum(horizon - sum(task.end - task.start for task in row) for row in streams.values())
