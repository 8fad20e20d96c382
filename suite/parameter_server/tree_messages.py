"""Who is connected to whom in a tree of server and learner processes, and the messages that pass between them.

Rudra's statistics server hears of every training loss, and tests the weights of every epoch (section 3.2). It is
never in the way: whoever tells it something leaves that to a thread, it listens to each in a thread, and tests one
model after another in one more. If it is lost, training goes on without it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from reference_impls.contract import GradientRef, Optimizer
from suite.parameter_server.processes import Connection
from suite.parameter_server.tree import Node, receivers, server_tree

PUSH, FAIL = range(2)  # what travels up: gradients, or who is lost
STOP, LOST = -1, -2  # answers in place of a timestamp
BROKEN = (RuntimeError, dist.DistError)
Answer = tuple[int, int, Tensor | None]  # timestamp, who is lost where it is LOST, the weights that came along
Sums = dict[int, Tensor]  # by timestamp of the weights read: [d + 1], the sum of gradients and that of their losses


@dataclass(frozen=True)
class TrainingJob:
    """What is trained, and how. Functions must be the same on every process, ``x0`` [d] as well.

    ``fetch`` takes (learner, number) to a mini-batch, ``gradient`` (weights [d], mini-batch) to its loss and
    gradient [d]. ``n`` is 0 for hardsync. With ``evaluate``, a function of the weights, the last process is a
    statistics server, which tests them by it after every ``epoch`` updates.
    """

    architecture: str
    n: int
    x0: Tensor
    fetch: Callable[[int, int], Any]
    gradient: Callable[[Tensor, Any], tuple[float, Tensor]]
    optimizer: Optimizer
    rate: Callable[[int], float]
    updates: int
    per_leaf: int = 8
    fan_out: int = 8
    broadcast_fan_out: int = 2
    evaluate: Callable[[Tensor], float] | None = None
    epoch: int = 1


class Message(NamedTuple):
    """A push: the timestamp of the weights that the sender holds, whose gradients these are, and their sums."""

    held: int
    entries: list[GradientRef]
    sums: Sums


class Layout:
    """Which process is what, of a job with so many learners."""

    def __init__(self, job: TrainingJob, learners: int):
        self.learners = learners
        leaf = Node("root", learners=list(range(learners)))
        self.root = leaf if job.architecture == "base" else server_tree(learners, job.per_leaf, job.fan_out)
        self.servers = self.root.below()
        ranks = {id(node): rank for rank, node in enumerate(self.servers)}
        first = len(self.servers)
        self.pushes: list[tuple[int, int]] = []  # (server, whose pushes it takes)
        for rank, node in enumerate(self.servers):
            self.pushes += [(rank, ranks[id(child)]) for child in node.children]
            self.pushes += [(rank, first + learner) for learner in node.learners]
        self.weights: list[tuple[int, int]] = []  # (sender, receiver) of adv*'s tree
        if job.architecture == "adv*":
            for sender in range(-1, learners):
                below = receivers(sender, learners, job.broadcast_fan_out)
                self.weights += [(0 if sender < 0 else first + sender, first + child) for child in below]

        self.processes = first + learners
        self.reports: list[tuple[int, int]] = []  # (statistics server, who tells it something)
        if job.evaluate:
            self.reports = [(self.processes, sender) for sender in (0, *range(first, self.processes))]
            self.processes += 1

    def name(self, rank: int) -> str:
        """What a process is, for a message."""
        servers = len(self.servers)
        return f"server {self.servers[rank].name!r}" if rank < servers else f"learner {rank - servers}"


class Pair(Connection):
    """A connection over which gradients are pushed and answered with weights."""

    def push(self, message: Message) -> None:
        entries = list(chain.from_iterable(message.entries))
        self.send(PUSH, len(message.entries), len(message.sums))
        dist.send(torch.tensor([message.held, *entries, *message.sums]), self.other, group=self.gloo)
        self.send_vector(torch.stack(list(message.sums.values())))

    def pushed(self, count: int, stamps: int, like: Tensor) -> Message:
        """The rest of a push whose header said so many gradients of so many timestamps; ``like`` [d]."""
        whole = torch.zeros(1 + 3 * count + stamps, dtype=torch.int64)
        dist.recv(whole, self.other, group=self.gloo)
        held, *numbers = whole.tolist()
        entries = [GradientRef(*numbers[at : at + 3]) for at in range(0, 3 * count, 3)]
        rows = self.receive_vector(like.new_empty(stamps, len(like) + 1))
        return Message(held, entries, dict(zip(numbers[3 * count :], rows, strict=True)))

    def exchange(self, message: Message, like: Tensor) -> Answer:
        """Push, and take the answer; weights are [d] as ``like``."""
        self.push(message)
        timestamp, about, weights = self.receive()
        return timestamp, about, self.receive_vector(like) if weights else None


def merge(into: Sums, sums: Sums) -> None:
    for timestamp, rows in sums.items():
        into[timestamp] = into[timestamp] + rows if timestamp in into else rows


def layout_of(job: TrainingJob, processes: int) -> Layout:
    """The layout that takes so many processes."""
    for learners in range(1, processes):
        layout = Layout(job, learners)
        if layout.processes == processes:
            return layout
    raise ValueError(f"no number of learners makes a tree of {processes} processes; {processes - 1} or more may do")


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

    def __init__(self, server: Pair, patience: float):
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

    def __init__(self, root: Pair, learners: list[Pair], job: TrainingJob):
        self.root, self.learners, self.job = root, learners, job
        self.observed = Observed()
        self.models: SimpleQueue[tuple[int, Tensor] | None] = SimpleQueue()

    def run(self) -> Observed:
        """Until the root and every learner has ended, or is lost, and every model has been tested."""
        assert self.job.evaluate is not None
        threads = [threading.Thread(target=self.hear, args=each) for each in enumerate(self.learners)]
        threads.append(threading.Thread(target=self.receive))
        for thread in threads:
            thread.start()
        while (model := self.models.get()) is not None:
            timestamp, x = model
            self.observed.tests.append((timestamp, self.job.evaluate(x)))
        for thread in threads:
            thread.join()
        return self.observed

    def hear(self, learner: int, pair: Pair) -> None:
        """A learner's losses."""
        one = self.job.x0.new_empty(1)
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
                    self.models.put((told[1], self.root.receive_vector(self.job.x0)))
        self.models.put(None)
