"""Rudra's statistics server: it hears of every training loss, and tests the weights of every epoch (section 3.2).

It is never in the way: whoever tells it something leaves that to a thread, it listens to each in a thread, and tests
one model after another in one more. If it is lost, training goes on without it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import NamedTuple

from torch import Tensor

from suite.parameter_server.messages import BROKEN, Connection

TELL, ALIVE, END = range(3)


class Loss(NamedTuple):
    """The loss of a learner's gradient of this number, on weights of this timestamp."""

    learner: int
    number: int
    timestamp: int
    value: float


@dataclass
class Observed:
    """What the statistics server has at the end: losses as they came, and tests as (timestamp, value)."""

    losses: list[Loss] = field(default_factory=list)
    tests: list[tuple[int, float]] = field(default_factory=list)


class Reports:
    """What one process tells the statistics server: in order, by a thread of its own."""

    def __init__(self, server: Connection, patience: float):
        """``patience``: seconds of silence after which the server is told that this process is alive."""
        self.server, self.patience = server, patience
        self.waiting: SimpleQueue[tuple[int, int, Tensor] | None] = SimpleQueue()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def tell(self, first: int, second: int, vector: Tensor) -> None:
        """Two integers and a vector, which must not be written to afterwards. Returns at once."""
        self.waiting.put((first, second, vector))

    def close(self) -> None:
        """Return when all has been delivered, or the server is lost."""
        self.waiting.put(None)
        self.thread.join()

    def run(self) -> None:
        with contextlib.suppress(*BROKEN):
            while True:
                try:
                    told = self.waiting.get(timeout=self.patience)
                except Empty:
                    self.server.send(ALIVE)
                    continue
                if told is None:
                    self.server.send(END)
                    return
                first, second, vector = told
                self.server.send(TELL, first, second)
                self.server.send_vector(vector)


class Statistics:
    """The server's side."""

    def __init__(self, root: Connection, learners: list[Connection], evaluate: Callable[[Tensor], float], x0: Tensor):
        self.root, self.learners, self.evaluate, self.x0 = root, learners, evaluate, x0
        self.observed = Observed()
        self.models: SimpleQueue[tuple[int, Tensor] | None] = SimpleQueue()

    def run(self) -> Observed:
        """Until the root and every learner has ended, or is lost, and every model has been tested."""
        threads = [threading.Thread(target=self.hear, args=each) for each in enumerate(self.learners)]
        threads.append(threading.Thread(target=self.receive))
        for thread in threads:
            thread.start()
        while (model := self.models.get()) is not None:
            timestamp, x = model
            self.observed.tests.append((timestamp, self.evaluate(x)))
        for thread in threads:
            thread.join()
        return self.observed

    def hear(self, learner: int, pair: Connection) -> None:
        """A learner's losses."""
        one = self.x0.new_empty(1)
        with contextlib.suppress(*BROKEN):
            while (told := pair.receive())[0] != END:
                kind, number, timestamp = told
                if kind == TELL:
                    self.observed.losses.append(Loss(learner, number, timestamp, float(pair.receive_vector(one))))

    def receive(self) -> None:
        """The root's weights."""
        with contextlib.suppress(*BROKEN):
            while (told := self.root.receive())[0] != END:
                if told[0] == TELL:
                    self.models.put((told[1], self.root.receive_vector(self.x0)))
        self.models.put(None)
