"""Rudra-base, -adv and -adv* as processes: a tree of servers that sum on the way up, weights that come down.

Process 0 is the root server, which updates the weights; the other servers of the tree follow, then the learners.
Servers and learners stand in the tree that the simulation uses (:mod:`suite.parameter_server.tree`), and the root
asks the same protocol in integers, so that the vector clock of a job can be followed by either.

base and adv: a learner's push is answered with the newest weights, once its gradient has reached the root. adv*: a
push is answered as soon as it is delivered to the learner's server; weights travel down a tree of the learners, into
a buffer of each that a swap of pointers puts to use. Mini-batches are fetched one ahead, in a thread, from whatever
holds the data: the paper's data server is a file system that all machines share, and so it is here. A statistics
server may hear of losses and test the weights of every epoch (:mod:`suite.parameter_server.tree_messages`).

A lost process ends the job. Whoever notices says so towards the root, and every server passes the name on with its
answer to the next push, so that each learner raises :class:`~suite.communication.group.WorkerLost` with it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor

from reference_impls import rudra_protocol
from reference_impls.contract import GradientRef
from suite.communication.group import Group, WorkerLost
from suite.parameter_server.flat import TimeLedger
from suite.parameter_server.processes import Served, updating
from suite.parameter_server.tree import Node
from suite.parameter_server.tree_messages import (
    BROKEN,
    FAIL,
    LOST,
    STOP,
    Answer,
    Message,
    Observed,
    Pair,
    Reports,
    Statistics,
    Sums,
    TrainingJob,
    layout_of,
    merge,
)


@dataclass
class Learnt:
    """What a learner has at the end: how many gradients it computed, and where its time went."""

    number: int = 0
    ledger: TimeLedger = field(default_factory=TimeLedger)


class Parent:
    """A server of the tree: a thread for each child, whose pushes are handled one by one.

    ``waits``: a push is answered with weights, when it has reached the root; otherwise once it is delivered here.
    """

    def __init__(self, children: Iterable[Pair], x0: Tensor, *, waits: bool):
        self.children, self.x, self.waits = list(children), x0, waits
        self.timestamp = 0
        self.stopped = False
        self.lost: int | None = None  # a process that is gone
        self.error: BaseException | None = None
        self.changed = threading.Condition()

    @property
    def over(self) -> bool:
        return self.stopped or self.lost is not None

    def run(self) -> None:
        """Until every child has been told to stop, or who is lost. Raises what went wrong here."""
        threads = [threading.Thread(target=self.listen, args=(child,)) for child in self.children]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.error:
            raise self.error

    def listen(self, child: Pair) -> None:
        try:
            while self.answer(child):
                pass
        except BROKEN:
            self.lose(child.other)
        except BaseException as error:
            self.error = error
            self.lose(dist.get_rank())

    def answer(self, child: Pair) -> bool:
        """One push; False once the child has been told to stop."""
        kind, count, stamps = child.receive()
        if kind == FAIL:
            self.lose(count)
            return False
        message = child.pushed(count, stamps, self.x)
        with self.changed:
            if not self.over:
                self.take(message)
            timestamp, x = self.timestamp, self.x
            ending = LOST if self.lost is not None else STOP if self.stopped else 0
        if ending:
            child.send(ending, self.lost or 0, 0)
            return False
        newer = self.waits and timestamp != message.held
        child.send(timestamp, 0, int(newer))
        if newer:
            child.send_vector(x)
        return True

    def take(self, message: Message) -> None:
        """Do what a push asks for; with ``waits`` return when it has been applied, or is over. Holds the lock."""
        raise NotImplementedError

    def lose(self, rank: int) -> None:
        with self.changed:
            if not self.over:
                self.lost = rank
                self.changed.notify_all()


class Root(Parent):
    """The server that holds the weights."""

    def __init__(
        self,
        children: Iterable[Pair],
        job: TrainingJob,
        learners: int,
        downcast: Pair | None,
        reports: Reports | None,
    ):
        super().__init__(children, job.x0, waits=downcast is None)
        self.protocol = rudra_protocol.Server(learners, job.n)
        self.update = updating(job.x0, job.n, learners, job.optimizer, job.rate)
        self.updates, self.downcast, self.reports, self.epoch = job.updates, downcast, reports, job.epoch
        self.sums: Sums = {}
        self.served = Served(job.x0)

    def run(self) -> None:
        sender = threading.Thread(target=self.send_weights)
        sender.start()
        super().run()
        sender.join()

    def take(self, message: Message) -> None:
        merge(self.sums, message.sums)
        turn = self.protocol.receive(message.entries)
        if turn is not None:
            rows = torch.stack([self.sums[at] for at in sorted(self.sums)])
            loss = float(rows[:, -1].sum()) / len(turn.entries)
            self.x = self.served.x = self.update(turn, rows[:, :-1], [loss], rows[:, :0])
            self.served.turns.append(turn)
            self.served.losses.append(loss)
            self.sums, self.timestamp = {}, self.protocol.timestamp
            if self.reports and self.timestamp % self.epoch == 0:
                self.reports.tell(self.timestamp, 0, self.x)
            self.stopped = self.timestamp >= self.updates
            self.changed.notify_all()
        if self.protocol.n == 0:
            self.changed.wait_for(lambda: self.over or self.timestamp > message.held)

    def send_weights(self) -> None:
        """adv*: whenever there are newer weights, send them to the first learner."""
        sent = 0
        with contextlib.suppress(*BROKEN):  # its learner is lost, which its server notices
            while self.downcast and sent >= 0:
                with self.changed:
                    while not self.over and self.timestamp == sent:
                        self.changed.wait()
                    sent, x = (STOP, self.x) if self.over else (self.timestamp, self.x)
                self.downcast.send(sent)
                if sent >= 0:
                    self.downcast.send_vector(x)


class Inner(Parent):
    """A server beneath the root: sums one gradient for each learner beneath it, then relays the sum."""

    def __init__(self, children: Iterable[Pair], job: TrainingJob, node: Node, parent: Pair):
        super().__init__(children, job.x0, waits=job.architecture == "adv")
        self.size, self.parent = node.size, parent
        self.entries: list[GradientRef] = []
        self.sums: Sums = {}
        self.relayed = 0

    def take(self, message: Message) -> None:
        self.entries += message.entries
        merge(self.sums, message.sums)
        relayed = self.relayed
        if len(self.entries) >= self.size:
            self.relay()  # holding the lock: until the sum is delivered the server does nothing else
        elif self.waits:
            self.changed.wait_for(lambda: self.over or self.relayed > relayed)

    def relay(self) -> None:
        message = Message(self.timestamp, self.entries, self.sums)
        self.entries, self.sums = [], {}
        try:
            timestamp, about, weights = self.parent.exchange(message, self.x)
        except BROKEN:
            timestamp, about, weights = LOST, self.parent.other, None
        if timestamp == STOP:
            self.stopped = True
        elif timestamp == LOST:
            self.lost = about
        else:
            self.timestamp = timestamp
            self.x = self.x if weights is None else weights
        self.relayed += 1
        self.changed.notify_all()

    def lose(self, rank: int) -> None:
        with self.changed:
            told = self.over
            super().lose(rank)
            if not told:
                with contextlib.suppress(*BROKEN):
                    self.parent.send(FAIL, rank)


class Downcast:
    """adv*'s pullWeights thread: keeps a buffer of the newest weights, and sends them on to its children."""

    def __init__(self, parent: Pair, children: list[Pair], x0: Tensor):
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


def learn(
    job: TrainingJob,
    learner: int,
    server: Pair,
    downcast: Downcast | None,
    name: Callable[[int], str],
    reports: Reports | None = None,
) -> Learnt:
    """A learner's part: computes, pushes, and takes up newer weights, until it is told to stop.

    Raises WorkerLost with the name of the process that is gone.
    """

    def exchange(message: Message, weights: Tensor) -> Answer:
        try:
            return server.exchange(message, weights)
        except BROKEN:
            return LOST, server.other, None

    told, held, x = Learnt(), 0, job.x0
    with ThreadPoolExecutor(1) as prefetch, ThreadPoolExecutor(1) as push:
        batch = prefetch.submit(job.fetch, learner, 0)
        pushed: Future[Answer] = push.submit(lambda: (0, 0, None))
        while True:
            drawn = batch.result()
            batch = prefetch.submit(job.fetch, learner, told.number + 1)
            began = time.perf_counter()
            loss, gradient = job.gradient(x, drawn)
            computed = time.perf_counter()
            if reports:
                reports.tell(told.number, held, gradient.new_tensor([loss]))
            sums = {held: torch.cat([gradient, gradient.new_tensor([loss])])}
            message = Message(held, [GradientRef(learner, held, told.number)], sums)
            told.number += 1
            if downcast is None:
                timestamp, about, weights = exchange(message, x)
            else:  # the last gradient must have been delivered before this one leaves
                timestamp, about, weights = pushed.result()
                if timestamp >= 0:
                    pushed = push.submit(exchange, message, x)
                    timestamp, weights = downcast.newest
            if timestamp == STOP:
                return told
            if timestamp == LOST:
                raise WorkerLost(f"learner {learner} stops after gradient {told.number}: {name(about)} is gone")
            told.ledger.computing += computed - began
            told.ledger.communicating += time.perf_counter() - computed
            told.ledger.pushes += 1
            if timestamp != held:
                assert weights is not None
                held, x = timestamp, weights
                told.ledger.pulls += 1


def train(group: Group, job: TrainingJob) -> Served | Learnt | Observed | None:
    """Train; the root returns Served, another server None, a learner Learnt, a statistics server Observed.

    Raises ValueError where processes differ or make no tree, and where adv* is to wait for weights; WorkerLost with
    the name of a process that is gone.
    """
    if job.architecture not in ("base", "adv", "adv*"):
        raise ValueError(f"architecture={job.architecture!r} must be 'base', 'adv' or 'adv*'")
    if job.architecture == "adv*" and job.n == 0:
        raise ValueError("Rudra-adv* does not wait for weights, so it cannot run hardsync; use n of 1 or more")
    layout = layout_of(job, group.size)
    facts = {"architecture": job.architecture, "n": job.n, "updates": job.updates, "parameters": job.x0.numel()}
    group.agree({**facts, "sum": float(job.x0.double().sum())})
    with group.watched():
        pushes = [Pair(group, *ends) for ends in layout.pushes]
        weights = [Pair(group, *ends) for ends in layout.weights]
        told = [Pair(group, *ends) for ends in layout.reports]
    group.heartbeat.stop()  # from here on the connections tell who is lost
    rank, servers = group.rank, len(layout.servers)
    if job.evaluate and rank == layout.processes - 1:
        return Statistics(told[0], told[1:], job).run()
    below = [pair for pair, (upper, _) in zip(pushes, layout.pushes, strict=True) if upper == rank]
    above = [pair for pair, (_, lower) in zip(pushes, layout.pushes, strict=True) if lower == rank]
    sends = [pair for pair, (upper, _) in zip(weights, layout.weights, strict=True) if upper == rank]
    receives = [pair for pair, (_, lower) in zip(weights, layout.weights, strict=True) if lower == rank]
    with contextlib.ExitStack() as held:
        reports = None
        for pair, (_, sender) in zip(told, layout.reports, strict=True):
            if sender == rank:
                reports = held.enter_context(contextlib.closing(Reports(pair, group.timeout / 3)))
        if rank >= servers:
            downcast = Downcast(receives[0], sends, job.x0) if receives else None
            learnt = learn(job, rank - servers, above[0], downcast, layout.name, reports)
            if downcast:
                downcast.thread.join()
            return learnt
        if rank == 0:
            server: Parent = Root(below, job, layout.learners, sends[0] if sends else None, reports)
        else:
            server = Inner(below, job, layout.servers[rank], above[0])
        server.run()
    if server.lost is not None:
        raise WorkerLost(
            f"{layout.name(rank)} stops after update {server.timestamp}: {layout.name(server.lost)} is gone"
        )
    return server.served if isinstance(server, Root) else None
