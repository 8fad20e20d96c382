"""Learning and synchronisation tasks on streams, in virtual time (Crossbow, sections 4.2-4.3, Fig. 8).

Each learner owns a replica and a stream. In every iteration it runs a learning task (a batch and the replica ->
gradient) and then a local synchronisation task (replica against central average model). A global synchronisation
task per device, on a stream of its own, aggregates the local differences. What waits for what:

    learn(i, j)   its replica and stream: after local(i - 1, j); and the scheduler's hand, see below
    local(i, j)   after learn(i, j), and after global(i - 1) on all devices: it reads the average model
    global(i, g)  after local(i, .) of all learners, since the all-reduce joins all devices

so global(i) runs alongside learn(i + 1). The scheduler hands out batches in order. *First come, first served*
gives the next batch to the replica that came free first; *round robin* gives it to replica n mod k, for which
everything behind it waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

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


def schedule(
    iterations: int, devices: int, learners: int, durations: Durations, policy: Policy = "first-come"
) -> list[Task]:
    """All tasks of ``iterations`` iterations with ``learners`` learners on each device, in order of start.

    Every iteration holds one learning task per replica. Raises ValueError for an unknown policy or sizes below 1.
    """
    if policy not in ("first-come", "round-robin") or min(iterations, devices, learners) < 1:
        raise ValueError(
            f"policy={policy!r} must be 'first-come' or 'round-robin', and iterations={iterations}, "
            f"devices={devices} and learners={learners} at least 1"
        )
    k = devices * learners
    tasks: list[Task] = []
    free = [(0.0, learner) for learner in range(k)]  # when each replica returns to the pool
    averaged = 0.0  # when the average model of the iteration before is there, on all devices
    handed = 0.0  # when the scheduler handed out the batch before
    batch = 0
    for iteration in range(iterations):
        heapq.heapify(free)
        returned: list[tuple[float, int]] = []
        finished: list[float] = []
        for place in range(k):
            if policy == "first-come":
                ready, learner = heapq.heappop(free)
            else:
                ready, learner = next(pair for pair in free if pair[1] == place)
            handed = start = max(ready, handed)
            device, stream = learner // learners, f"learner {learner}"
            end = start + durations.learn(batch)
            tasks.append(Task("learn", iteration, device, stream, learner, batch, start, end))
            begin = max(end, averaged)
            tasks.append(Task("local", iteration, device, stream, learner, -1, begin, begin + durations.local))
            returned.append((begin + durations.local, learner))
            finished.append(begin + durations.local)
            batch += 1
        start = max(finished)
        averaged = start + durations.overall
        tasks += [
            Task("global", iteration, device, f"synchronisation {device}", -1, -1, start, averaged)
            for device in range(devices)
        ]
        free = returned
    return sorted(tasks, key=lambda task: (task.start, task.stream))


def idle_seconds(tasks: list[Task]) -> float:
    """Stream-seconds in which a learner's stream waits, from the start to the end of all its tasks."""
    streams: dict[str, list[Task]] = {}
    for task in tasks:
        if task.learner >= 0:
            streams.setdefault(task.stream, []).append(task)
    horizon = max(task.end for row in streams.values() for task in row)
    return sum(horizon - sum(task.end - task.start for task in row) for row in streams.values())


def assignment(tasks: list[Task], learners: int) -> list[tuple[int, ...]]:
    """For each iteration, which batch each of the ``learners`` learners read."""
    table: dict[int, dict[int, int]] = {}
    for task in tasks:
        if task.kind == "learn":
            table.setdefault(task.iteration, {})[task.learner] = task.batch
    return [tuple(table[i][learner] for learner in range(learners)) for i in sorted(table)]
