"""Rudra-base, -adv and -adv* as processes: a tree of servers that sum on the way up, weights that come down.

Process 0 is the root server, which updates the weights; the other servers of the tree follow, then the learners. Base
is a tree of one server. Servers and learners stand in the tree that :mod:`suite.parameter_server.simulation` uses,
and the root asks the same protocol in integers, so that the vector clock of a job can be followed by either. Every
two processes have a connection (process group) of their own, so that one that is lost does not take the others'
connections with it.

base and adv: a learner's push is answered with the newest weights, once its gradient has reached the root. adv*: a
push is answered as soon as it is delivered to the learner's server; weights travel down a tree of the learners, into
a buffer of each that a swap of pointers puts to use. Mini-batches are fetched one ahead, in a thread, from whatever
holds the data: the paper's data server is a file system that all machines share, and so it is here. A statistics
server may hear of every training loss, and test the weights of every epoch (section 3.2). It is never in the way:
whoever tells it something leaves that to a thread, it listens to each in a thread, and tests one model after another
in one more. If it is lost, training goes on without it.

A lost process ends the job. Whoever notices says so towards the root, and every server passes the name on with its
answer to the next push, so that each learner raises :class:`~suite.communication.group.WorkerLost` with it. Only a
server that all learners push to directly goes on without one under n-softsync. A process counts as lost when its
connection breaks, or when it does not answer within the group's ``timeout``, which must therefore exceed the time of
one gradient (and, under hardsync, of the slowest).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from reference_impls import rudra
from reference_impls.contract import GradientRef, Optimizer, Turn
from suite.communication.collectives import Local
from suite.communication.group import Group, WorkerLost
from suite.parameter_server.protocol import TimeLedger
from suite.parameter_server.servers import (
    BROKEN,
    FAIL,
    LOST,
    STOP,
    Connection,
    Inner,
    Layout,
    Message,
    Root,
    Served,
    Update,
    first_line,
)

AWAITED = 3.0  # seconds in which a server takes a failed learner's last word, if it listens


@dataclass(frozen=True)
class TrainingJob:
    """What is trained by which processes, and how. Functions and ``x0`` [d] must be the same on every process.

    ``fetch`` takes (learner, number) to a mini-batch, ``gradient`` (weights [d], mini-batch) to its loss and
    gradient [d]. ``n`` is 0 for hardsync. A statistics server applies ``evaluate`` to the weights [d] after every
    ``epoch`` updates; the layout has one if and only if there is ``evaluate``.
    """

    layout: Layout
    n: int
    x0: Tensor
    fetch: Callable[[int, int], Any]
    gradient: Callable[[Tensor, Any], tuple[float, Tensor]]
    optimizer: Optimizer
    rate: Callable[[int], float]
    updates: int
    evaluate: Callable[[Tensor], float] | None = None
    epoch: int = 1


def updating(x0: Tensor, n: int, learners: int, optimizer: Optimizer, rate: Callable[[int], float]) -> Update:
    """The root's update, which keeps state and weights from one call to the next."""
    algorithm = rudra.Softsync(optimizer, Local(learners), learners, n)  # learners keep what they read: no history
    state = algorithm.init(x0)

    def update(turn: Turn, sums: Tensor, losses: list[float], notes: Tensor) -> Tensor:
        nonlocal state
        lr = torch.tensor(rate(turn.t), dtype=x0.dtype, device=x0.device)
        state = algorithm.update(state, turn, torch.tensor(losses), sums, lr)
        return state.x

    return update


def connect(group: Group, facts: dict[str, Any], x0: Tensor, *kinds: list[tuple[int, int]]) -> list[list[Connection]]:
    """Connections of several kinds, once all processes agree on ``facts`` and on the weights x0 [d].

    Raises ValueError if they do not.
    """
    group.agree({**facts, "parameters": x0.numel(), "sum": float(x0.double().sum())})
    with group.watched():
        made = [[Connection(group, *ends) for ends in pairs] for pairs in kinds]
    group.heartbeat.stop()  # from here on the connections tell who is lost, and softsync survives it
    return made


class Downcast:
    """adv*'s pullWeights thread: keeps a buffer of the newest weights, and sends them on to its children."""

    def __init__(self, parent: Connection, children: list[Connection], x0: Tensor):
        self.parent, self.children = parent, children
        self.newest: tuple[int, Tensor] = (0, x0)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        timestamp = 0
        while timestamp >= 0:
            try:
                timestamp = self.parent.receive()[0]
                if timestamp >= 0:
                    self.newest = (timestamp, self.parent.receive_vector(self.newest[1]))
            except BROKEN:  # the push will tell who is lost
                timestamp = STOP
            for child in self.children:
                with contextlib.suppress(*BROKEN):
                    child.send(timestamp)
                    if timestamp >= 0:
                        child.send_vector(self.newest[1])


class Learner:
    """A learner's side: pushes gradients and holds newer weights, until the server says stop.

    Once ``stopped``, under base and adv, it holds the weights after the last update. The vector [q] in the type of
    the weights that ``leaves`` returns stays with the server then.
    """

    def __init__(self, server: Connection, learner: int, layout: Layout, leaves: Callable[[], Tensor] | None = None):
        self.server, self.learner, self.layout, self.leaves = server, learner, layout, leaves
        self.timestamp = self.number = 0  # updates behind the weights it holds, gradients pushed
        self.stopped = False
        self.ledger = TimeLedger()  # where its time went, by :func:`learn`

    def push(self, row: Tensor) -> Message:
        """The message with a gradient, its loss and notes [d + 1 + e] of the weights that it holds."""
        entry = GradientRef(self.learner, self.timestamp, self.number)
        self.number += 1
        return Message(self.timestamp, [entry], {self.timestamp: row})

    def exchange(self, message: Message, weights: Tensor) -> Tensor:
        """Push, and pull if there are newer weights than ``weights`` [d]; the weights to go on with.

        Raises WorkerLost with the name of a process that is gone.
        """
        stops = f"learner {self.learner} stops after gradient {self.number}"
        try:
            kind, number, newer = self.server.exchange(message, weights)
            if kind == STOP and self.leaves:
                self.server.send_vector(self.leaves())
        except BROKEN as error:
            raise WorkerLost(
                f"{stops}: {self.layout.name(self.server.other)} is gone: {first_line(error)}"
            ) from error
        if kind == LOST:
            raise WorkerLost(f"{stops}: {self.layout.name(number)} is gone")
        self.stopped = kind == STOP
        if newer is None:
            return weights
        self.timestamp = number
        return newer

    def fail(self) -> None:
        """Say that this learner ends before it was told to stop, so that the server need not wait to find out."""
        with contextlib.suppress(*BROKEN):
            word = torch.tensor([FAIL, self.server.lower, 0])
            message = dist.isend(word, self.server.other, group=self.server.gloo)
            if message is not None:
                message.wait(timedelta(seconds=AWAITED))  # it may not be listening


def learn(job: TrainingJob, learner: Learner, downcast: Downcast | None, reports: Reports) -> Learner:
    """A learner's part: computes, pushes, and takes up newer weights, until it is told to stop.

    Raises WorkerLost with the name of the process that is gone.
    """
    x = job.x0
    with ThreadPoolExecutor(1) as prefetch, ThreadPoolExecutor(1) as push:
        batch = prefetch.submit(job.fetch, learner.learner, 0)
        pushed: Future[Tensor] = push.submit(lambda: x)
        while True:
            drawn = batch.result()
            batch = prefetch.submit(job.fetch, learner.learner, learner.number + 1)
            began = time.perf_counter()
            loss, gradient = job.gradient(x, drawn)
            computed = time.perf_counter()
            value = gradient.new_tensor([loss])
            reports.tell(learner.number, learner.timestamp, value)
            message = learner.push(torch.cat([gradient, value]))
            if downcast is None:
                x = learner.exchange(message, x)
            else:
                pushed.result()  # the last gradient must have been delivered before this one leaves
                if not learner.stopped:
                    pushed = push.submit(learner.exchange, message, x)
                    learner.timestamp, x = downcast.newest
            if learner.stopped:
                return learner
            learner.ledger.cycle(computed - began, time.perf_counter() - computed)


def train(group: Group, job: TrainingJob) -> Served | Learner | Observed | None:
    """Train; the root returns Served, another server None, a statistics server Observed.

    Raises ValueError where processes differ or are not those of the layout, and where adv* is to wait for weights;
    WorkerLost with the name of a process that is gone.
    """
    layout = job.layout
    if layout.architecture not in ("base", "adv", "adv*"):
        raise ValueError(f"architecture={layout.architecture!r} must be 'base', 'adv' or 'adv*'")
    if layout.architecture == "adv*" and job.n == 0:
        raise ValueError("Rudra-adv* does not wait for weights, so it cannot run hardsync; use n of 1 or more")
    if group.size != layout.processes:
        raise ValueError(f"{layout.learners} learners need {layout.processes} processes, and here are {group.size}")
    if (job.evaluate is not None) != bool(layout.reports):
        raise ValueError("evaluate and a layout with tested=True need each other")
    facts = {"architecture": layout.architecture, "n": job.n, "updates": job.updates, "epoch": job.epoch}
    pushes, weights, told = connect(group, facts, job.x0, layout.pushes, layout.weights, layout.reports)
    rank = group.rank
    if job.evaluate and rank == layout.processes - 1:
        return observe(told[0], told[1:], job.evaluate, job.x0)
    reports = Reports(told, group)
    try:
        return take_part(rank, job, pushes, weights, reports)
    finally:
        reports.close()


def take_part(
    rank: int, job: TrainingJob, pushes: list[Connection], weights: list[Connection], reports: Reports
) -> Served | Learner | None:
    """The part of a server or a learner, of which ``pushes`` and ``weights`` are all connections."""
    layout = job.layout
    below = [pair for pair in pushes if pair.upper == rank]
    above = [pair for pair in pushes if pair.lower == rank]
    sends = [pair for pair in weights if pair.upper == rank]
    receives = [pair for pair in weights if pair.lower == rank]
    if rank >= layout.first:
        downcast = Downcast(receives[0], sends, job.x0) if receives else None
        learner = learn(job, Learner(above[0], rank - layout.first, layout), downcast, reports)
        if downcast:
            downcast.thread.join()
        return learner
    if rank:
        Inner(below, layout, rank, job.x0, above[0], waits=layout.architecture == "adv").run()
        return None
    update = updating(job.x0, job.n, layout.learners, job.optimizer, job.rate)
    root = Root(
        below, layout, job.n, job.x0, update, job.updates, downcast=sends[0] if sends else None,
        tell=reports.every(job.epoch),
    )  # fmt: skip
    root.run()
    return root.served


TELL, ALIVE, END = range(3)


@dataclass
class Observed:
    """What the statistics server has at the end: losses as they came, and tests as (timestamp, value).

    A loss is (learner, number of its gradient, timestamp of the weights it read, value).
    """

    losses: list[tuple[int, int, int, float]] = field(default_factory=list)
    tests: list[tuple[int, float]] = field(default_factory=list)


class Reports:
    """What one process tells the statistics server, if there is one: in order, by a thread of its own."""

    def __init__(self, connections: list[Connection], group: Group):
        """``connections``: of all processes to the statistics server."""
        self.patience = group.timeout / 3  # seconds of silence after which it is told that this process is alive
        self.waiting: SimpleQueue[tuple[int, int, Tensor] | None] = SimpleQueue()
        own = [pair for pair in connections if pair.lower == group.rank]
        self.threads = [threading.Thread(target=self.run, args=(server,), daemon=True) for server in own]
        for thread in self.threads:
            thread.start()

    def tell(self, first: int, second: int, vector: Tensor) -> None:
        """Two integers and a vector, which must not be written to afterwards. Returns at once."""
        if self.threads:
            self.waiting.put((first, second, vector))

    def every(self, epoch: int) -> Callable[[int, Tensor], None]:
        """What tells the weights [d] behind a number of updates, if that is a multiple of ``epoch``."""
        return lambda timestamp, x: None if timestamp % epoch else self.tell(timestamp, 0, x)

    def close(self) -> None:
        """Return when all has been delivered, or the server is lost."""
        self.waiting.put(None)
        for thread in self.threads:
            thread.join()

    def run(self, server: Connection) -> None:
        with contextlib.suppress(*BROKEN):
            while True:
                try:
                    told = self.waiting.get(timeout=self.patience)
                except Empty:
                    server.send(ALIVE)
                    continue
                if told is None:
                    server.send(END)
                    return
                first, second, vector = told
                server.send(TELL, first, second)
                server.send_vector(vector)


def observe(
    root: Connection, learners: list[Connection], evaluate: Callable[[Tensor], float], x0: Tensor
) -> Observed:
    """What a statistics server sees, until root and learners have ended or are lost and all models are tested."""
    observed = Observed()
    models: SimpleQueue[tuple[int, Tensor] | None] = SimpleQueue()

    def hear(learner: int, pair: Connection) -> None:
        one = x0.new_empty(1)
        with contextlib.suppress(*BROKEN):
            while (told := pair.receive())[0] != END:
                kind, number, timestamp = told
                if kind == TELL:
                    observed.losses.append((learner, number, timestamp, float(pair.receive_vector(one))))

    def receive() -> None:
        with contextlib.suppress(*BROKEN):
            while (told := root.receive())[0] != END:
                if told[0] == TELL:
                    models.put((told[1], root.receive_vector(x0)))
        models.put(None)

    with ThreadPoolExecutor(1 + len(learners)) as threads:
        heard = [threads.submit(hear, *each) for each in enumerate(learners)] + [threads.submit(receive)]
        while (model := models.get()) is not None:
            timestamp, x = model
            observed.tests.append((timestamp, evaluate(x)))
    for each in heard:
        each.result()
    return observed
