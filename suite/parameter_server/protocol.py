"""A server's protocol in integers under a virtual clock: when which update happens, and nothing else.

The quickest way to staleness statistics: one event is a gradient pushed and the weights pulled, both at the same
instant, and costs a few microseconds whatever the number of workers. Messages, queues and trees of servers are
in :mod:`suite.parameter_server.simulation`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from reference_impls.contract import Turn
from reference_impls.rudra_protocol import Server
from suite.lazy import np
from suite.spec import seed

Timed = tuple[float, Turn]
"""Virtual seconds at which an update happens, and the update."""

BLOCK = 64  # random durations drawn at a time for one worker: enough to amortise, few enough to stay in cache


class GammaDurations:
    """Seconds of each gradient: gamma distributed with the given mean and relative standard deviation ``jitter``.

    The numbers depend on (seed, worker, how many that worker has drawn) alone, not on the order of the calls.
    ``mean`` may differ from worker to worker.
    """

    def __init__(self, mean: float | list[float], jitter: float, run_seed: int):
        self.mean, self.jitter, self.seed = mean, jitter, run_seed
        self._waiting: dict[int, list[float]] = {}
        self._blocks: Counter[int] = Counter()

    def __call__(self, worker: int) -> float:
        """The worker's next duration in seconds."""
        waiting = self._waiting.get(worker)
        if not waiting:
            waiting = self._waiting[worker] = self._draw(worker)
        return waiting.pop()

    def _draw(self, worker: int) -> list[float]:
        mean = self.mean[worker] if isinstance(self.mean, list) else self.mean
        block = self._blocks[worker]
        self._blocks[worker] += 1
        if not self.jitter:
            return [mean] * BLOCK
        shape = self.jitter**-2
        generator = np.random.Generator(np.random.PCG64(seed(self.seed, "durations", worker, block)))
        return generator.gamma(shape, mean / shape, BLOCK).tolist()[::-1]


def play(server: Server, workers: int, duration: Callable[[int], float]) -> Iterator[Timed]:
    """Endless updates of ``workers`` workers that push and pull at the end of each duration.

    Workers that may not pull yet (a barrier) wait; each update lets go of them. Ties go to the lower worker.
    """
    agenda = [(duration(worker), worker) for worker in range(workers)]
    heapq.heapify(agenda)
    blocked: list[int] = []
    while agenda:
        now, worker = agenda[0]
        turn = server.push(worker)
        if server.may_pull(worker):
            server.pull(worker)
            heapq.heapreplace(agenda, (now + duration(worker), worker))
        else:
            heapq.heappop(agenda)
            blocked.append(worker)
        if turn is not None:
            for other in blocked:
                server.pull(other)
                heapq.heappush(agenda, (now + duration(other), other))
            blocked.clear()
            yield now, turn


@dataclass
class Staleness:
    """What the vector clocks of a stretch of updates say: gradients by staleness, and means per update."""

    counts: Counter[int] = field(default_factory=Counter)  # gradients by staleness in updates
    averages: list[float] = field(default_factory=list)  # <sigma> of each update (rudra, Eq. 2)
    seconds: float = 0.0  # virtual time of the last update

    def add(self, timed: Iterable[Timed]) -> Staleness:
        """Count further updates; returns itself."""
        for now, turn in timed:
            total = 0
            for _, read, _ in turn.entries:
                sigma = turn.t - read
                self.counts[sigma] += 1
                total += sigma
            self.averages.append(total / len(turn.entries))
            self.seconds = now
        return self

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def mean(self) -> float:
        """Mean over gradients, in updates."""
        return sum(sigma * count for sigma, count in self.counts.items()) / self.total

    def above(self, bound: int) -> int:
        """Gradients whose staleness exceeds ``bound``."""
        return sum(count for sigma, count in self.counts.items() if sigma > bound)


@dataclass
class TimeLedger:
    """Seconds of all learners: where their time went."""

    computing: float = 0.0
    communicating: float = 0.0

    def cycle(self, computing: float, communicating: float) -> None:
        """A learner has computed a gradient, pushed it and goes on to the next."""
        self.computing += computing
        self.communicating += communicating

    @property
    def overlap(self) -> float:
        """Table 1's measure: computation over computation plus communication."""
        return self.computing / (self.computing + self.communicating)
