"""Rudra's protocol and rates in plain numbers, which specifications of runs and clocks read: no torch here.

    paper   | code                 | unit
    lambda  | workers              | learners
    n       | n                    | splitting parameter; 0 is hardsync
    c       | gradients_per_update | gradients
    alpha_0 | base_rate            | learning rate of the reference model
    mu      | examples             | examples in a learner's mini-batch
    B       | reference_examples   | examples in the reference model's mini-batch

The paper and the update rules are those of :mod:`reference_impls.rudra`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import sqrt

from reference_impls.contract import GradientRef, Turn


def gradients_per_update(workers: int, n: int) -> int:
    """c = floor(lambda / n), lambda under hardsync (section 3.1).

    Raises ValueError unless 0 <= n <= workers and workers >= 1.
    """
    if workers < 1 or not 0 <= n <= workers:
        raise ValueError(
            f"rudra: n={n} with {workers} learners; n must be 0 (hardsync) or from 1 (softsync over all "
            "learners) to the number of learners (async), of which there must be at least one"
        )
    return workers // max(n, 1)


def hardsync_rate(base_rate: float, workers: int, examples: int, reference_examples: int = 128) -> float:
    """alpha_0 sqrt(lambda mu / B) (section 3.2)."""
    return base_rate * sqrt(workers * examples / reference_examples)


def softsync_rate(base_rate: float, n: int) -> float:
    """alpha_0 / n (Eq. 6); whatever the mini-batch."""
    return base_rate / n


def average_staleness(turn: Turn) -> float:
    """<sigma> in updates (Eq. 2) of the vector clock that the entries of a turn form."""
    return turn.t - sum(entry.read for entry in turn.entries) / len(turn.entries)


@dataclass
class Server:
    """The protocol in integers: who may push and pull when, and which gradients make an update.

    Every field is a plain number or list, so the server survives a trip through JSON:
    ``Server(**json.loads(json.dumps(asdict(server))))``.
    """

    workers: int  # lambda
    n: int  # 0: hardsync
    timestamp: int = 0  # updates made
    read: list[int] = field(default_factory=list)  # per worker, timestamp of the weights it holds
    number: list[int] = field(default_factory=list)  # per worker, gradients pushed
    buffer: list[GradientRef] = field(default_factory=list)  # gradients that wait for an update

    def __post_init__(self) -> None:
        self.collect = gradients_per_update(self.workers, self.n)  # c, the gradients that make an update
        self.read = list(self.read) or [0] * self.workers
        self.number = list(self.number) or [0] * self.workers
        self.buffer = [GradientRef(*entry) for entry in self.buffer]

    def begin(self, worker: int) -> GradientRef:
        """The gradient that a learner computes next, on the weights it holds now. It is pushed by ``receive``."""
        entry = GradientRef(worker, self.read[worker], self.number[worker])
        self.number[worker] += 1
        return entry

    def receive(self, entries: Iterable[GradientRef]) -> Turn | None:
        """Gradients arrive, several at once from a tree of servers; the update they complete, if they complete one.

        Raises ValueError if a hardsync learner did not pull since its last push.
        """
        for entry in entries:
            if self.n == 0 and (entry.number != self.timestamp or entry.read != self.timestamp):
                raise ValueError(
                    f"rudra: learner {entry.worker} pushed at timestamp {self.timestamp} without pulling since its "
                    "last push; under hardsync it must wait for may_pull, then pull"
                )
            self.buffer.append(entry)
        if len(self.buffer) < self.collect:
            return None
        turn = Turn(self.timestamp, tuple(sorted(self.buffer, key=lambda entry: entry.read)))
        self.buffer = []
        self.timestamp += 1
        return turn

    def push(self, worker: int) -> Turn | None:
        """The gradient that the learner computed on the weights it pulled last arrives: begun and received."""
        self._check(worker)
        turn = self.receive((GradientRef(worker, self.read[worker], self.number[worker]),))
        self.number[worker] += 1
        return turn

    def may_pull(self, worker: int) -> bool:
        """False while a hardsync learner's gradient waits for those of the others."""
        self._check(worker)
        return self.n > 0 or self.number[worker] <= self.timestamp

    def pull(self, worker: int) -> int:
        """The learner takes the newest weights. Raises ValueError where ``may_pull`` is False."""
        if not self.may_pull(worker):
            raise ValueError(
                f"rudra: learner {worker} pulled before update {self.timestamp} was complete; ask may_pull"
            )
        self.read[worker] = self.timestamp
        return self.timestamp

    def _check(self, worker: int) -> None:
        if not 0 <= worker < self.workers:
            raise ValueError(f"rudra: no learner {worker}; there are {self.workers}, counted from 0")
