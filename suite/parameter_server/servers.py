"""Servers and learners that are processes: who is connected to whom, the messages between them, and the servers.

A push is a header of integers, the gradients' references, and sums of gradients by timestamp; it is answered with a
header, and with weights where there are newer ones.

Vectors travel over gloo, from and to the host also where they lie on GPUs: a lost learner shows there as an error of
its own connection, while under NCCL it would end the server, and a communicator for each learner on the server's one
GPU can wait for another for ever.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from typing import NamedTuple, cast

import torch
import torch.distributed as dist
from torch import Tensor

from reference_impls import rudra_protocol
from reference_impls.contract import GradientRef, Turn
from suite.communication.group import Group, WorkerLost
from suite.parameter_server.topology import Node, receivers, server_tree

PUSH, FAIL = range(2)  # what travels up: gradients, or who is lost
GO, STOP, LOST = 0, -1, -2  # answers: go on or stop with weights of a timestamp, or who is lost
BROKEN = (RuntimeError, dist.DistError)
Answer = tuple[int, int, Tensor | None]  # GO or STOP with a timestamp, LOST with a rank; newer weights [d]
Sums = dict[int, Tensor]  # by timestamp of the weights read: [d], or [d + 1 + e] with the losses' sum and notes


class Message(NamedTuple):
    """A push: the timestamp of the weights that the sender holds, whose gradients these are, and their sums."""

    held: int
    entries: list[GradientRef]
    sums: Sums


class Connection:
    """A connection between two processes, of which ``upper`` is nearer to the root. Made on all processes at once."""

    def __init__(self, group: Group, upper: int, lower: int):
        self.upper, self.lower = upper, lower
        # who is further from the server is more patient, so that it can be told who is lost
        patience = timedelta(seconds=group.timeout * (3 if group.rank == lower else 1))
        self.other = lower if group.rank == upper else upper
        self.gloo = cast(dist.ProcessGroup, dist.new_group([upper, lower], timeout=patience, backend="gloo"))

    def send(self, *header: int) -> None:
        self.send_vector(torch.tensor([*header, 0, 0][:3]))

    def receive(self) -> list[int]:
        return self.receive_vector(torch.zeros(3, dtype=torch.int64)).tolist()

    def send_vector(self, vector: Tensor) -> None:
        dist.send(vector.cpu().contiguous(), self.other, group=self.gloo)

    def receive_vector(self, like: Tensor) -> Tensor:
        vector = torch.empty_like(like, device="cpu")
        dist.recv(vector, self.other, group=self.gloo)
        return vector.to(like.device)

    def push(self, message: Message) -> None:
        entries = list(chain.from_iterable(message.entries))
        self.send(PUSH, len(message.entries), len(message.sums))
        self.send_vector(torch.tensor([message.held, *entries, *message.sums]))
        self.send_vector(torch.stack(list(message.sums.values())))

    def pushed(self, count: int, stamps: int, row: Tensor) -> Message:
        """The rest of a push whose header said so many gradients of so many timestamps, each sum as ``row``."""
        held, *numbers = self.receive_vector(torch.zeros(1 + 3 * count + stamps, dtype=torch.int64)).tolist()
        entries = [GradientRef(*numbers[at : at + 3]) for at in range(0, 3 * count, 3)]
        rows = self.receive_vector(row.new_empty(stamps, len(row)))
        return Message(held, entries, dict(zip(numbers[3 * count :], rows, strict=True)))

    def exchange(self, message: Message, like: Tensor) -> Answer:
        """Push, and take the answer; weights are [d] as ``like``."""
        self.push(message)
        kind, number, newer = self.receive()
        return kind, number, self.receive_vector(like) if newer else None


def merge(into: Sums, sums: Sums) -> None:
    for timestamp, rows in sums.items():
        into[timestamp] = into[timestamp] + rows if timestamp in into else rows


class Layout:
    """Which process is what: the root server is process 0, the other servers follow, then ``learners``.

    Base has one server. With ``tested`` the last process is a statistics server.
    """

    def __init__(
        self,
        learners: int,
        architecture: str = "base",
        *,
        per_leaf: int = 8,
        fan_out: int = 8,
        tested: bool = False,
    ):
        self.learners, self.architecture = learners, architecture
        one = Node("server", learners=list(range(learners)))
        self.servers = (one if architecture == "base" else server_tree(learners, per_leaf, fan_out)).below()
        ranks = {id(node): rank for rank, node in enumerate(self.servers)}
        self.first = first = len(self.servers)  # rank of learner 0
        self.pushes: list[tuple[int, int]] = []  # (server, whose pushes it takes)
        for rank, node in enumerate(self.servers):
            self.pushes += [(rank, ranks[id(child)]) for child in node.children]
            self.pushes += [(rank, first + learner) for learner in node.learners]
        self.weights: list[tuple[int, int]] = []  # (sender, receiver) of adv*'s tree
        if architecture == "adv*":
            for sender in range(-1, learners):
                below = receivers(sender, learners)
                self.weights += [(0 if sender < 0 else first + sender, first + child) for child in below]
        self.processes = first + learners
        self.reports: list[tuple[int, int]] = []  # (statistics server, who tells it something)
        if tested:
            self.reports = [(self.processes, sender) for sender in (0, *range(first, self.processes))]
            self.processes += 1

    def edges(self) -> list[tuple[str, str, str]]:
        """Who sends what to whom: sender, receiver, gradients or weights."""
        names = [*(node.name for node in self.servers), *(f"learner {number}" for number in range(self.learners))]
        found = []
        for upper, lower in self.pushes:
            found.append((names[lower], names[upper], "gradients"))
            if self.architecture != "adv*":  # whose learners hand weights on
                found.append((names[upper], names[lower], "weights"))
        return found + [(names[sender], names[receiver], "weights") for sender, receiver in self.weights]

    def name(self, rank: int) -> str:
        """What a process is, for a message."""
        if rank >= self.first:
            return f"learner {rank - self.first}"
        return "the server, process 0," if self.first == 1 else f"server {self.servers[rank].name!r}"


Update = Callable[[Turn, Tensor, list[float], Tensor], Tensor]
"""(clock, sums of gradients [p, d], their losses, notes [e] that came with the last) -> new weights [d]."""


@dataclass
class Served:
    """What the root has at the end."""

    x: Tensor  # [d] weights after the last update
    turns: list[Turn] = field(default_factory=list)  # the vector clock of every update
    losses: list[float] = field(default_factory=list)  # mean loss of each update's gradients
    lost: dict[int, str] = field(default_factory=dict)  # learners that went missing, and how that showed
    left: list[Tensor] = field(default_factory=list)  # [q] what each learner left behind when it was told to stop


def first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


class Parent:
    """A server of the tree: a thread for each child, whose pushes are handled one by one.

    ``waits``: a push is answered with weights, when it has reached the root; otherwise once it is delivered here.
    A row of its sums holds a gradient, its loss and ``notes`` numbers.
    """

    def __init__(
        self, children: list[Connection], layout: Layout, rank: int, x0: Tensor, *, waits: bool, notes: int = 0
    ):
        self.children, self.layout, self.rank, self.x, self.waits = children, layout, rank, x0, waits
        self.row = x0.new_empty(len(x0) + 1 + notes)
        self.timestamp = 0
        self.stopped = False
        self.lost: int | None = None  # a process that is gone
        self.reason = ""
        self.error: BaseException | None = None
        self.changed = threading.Condition()

    @property
    def over(self) -> bool:
        return self.stopped or self.lost is not None

    def run(self) -> None:
        """Until every child has been told to stop, or who is lost. Raises what went wrong here, or WorkerLost."""
        threads = [threading.Thread(target=self.listen, args=(child,)) for child in self.children]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.error:
            raise self.error
        if self.lost is not None:
            name, lost = self.layout.name(self.rank), self.layout.name(self.lost)
            raise WorkerLost(f"{name} stops after update {self.timestamp}: {lost} is gone {self.reason}".rstrip())

    def listen(self, child: Connection) -> None:
        try:
            while self.answer(child):
                pass
        except BROKEN as error:
            self.lose(child.other, first_line(error))

    def answer(self, child: Connection) -> bool:
        """One push; False once the child has been told to stop."""
        kind, count, stamps = child.receive()
        if kind == FAIL:
            self.lose(count, "an error ended it" if count == child.other else "")
            return False
        message = child.pushed(count, stamps, self.row)
        with self.changed:
            try:
                if not self.over:
                    self.take(message)
            except Exception as error:
                self.error = error
                self.lose(self.rank, "")
            lost, stopped, timestamp, x = self.lost, self.stopped, self.timestamp, self.x
        if lost is not None:
            child.send(LOST, lost)
            return False
        newer = self.waits and timestamp != message.held
        child.send(STOP if stopped else GO, timestamp, int(newer))
        if newer:
            child.send_vector(x)
        return not stopped

    def take(self, message: Message) -> None:
        """Do what a push asks for; with ``waits`` return when it has been applied, or is over. Holds the lock."""
        raise NotImplementedError

    def lose(self, rank: int, reason: str) -> None:
        """A process is gone, which ends the job."""
        with self.changed:
            if not self.over:
                self.lost, self.reason = rank, f"({reason})" if reason else ""
                self.changed.notify_all()


class Root(Parent):
    """The server that holds the weights. It updates them by ``update``, ``updates`` times.

    ``update`` must not write to the weights that it returned before: they may be on their way to a learner. Every
    child leaves a vector of ``leaves`` numbers behind when it is told to stop.
    """

    def __init__(
        self,
        children: list[Connection],
        layout: Layout,
        n: int,
        x0: Tensor,
        update: Update,
        updates: int,
        *,
        notes: int = 0,
        leaves: int = 0,
        downcast: Connection | None = None,
        tell: Callable[[int, Tensor], None] = lambda timestamp, x: None,
    ):
        super().__init__(children, layout, 0, x0, waits=downcast is None, notes=notes)
        self.protocol = rudra_protocol.Server(layout.learners, n)
        self.update, self.updates, self.leaves, self.downcast, self.tell = update, updates, leaves, downcast, tell
        self.sums: Sums = {}  # of the gradients that wait for an update
        self.losses: list[float] = []  # of the same
        self.served = Served(x0)

    def run(self) -> None:
        sender = threading.Thread(target=self.send_weights)
        sender.start()
        super().run()
        sender.join()
        if not self.stopped:
            raise WorkerLost(
                f"the server stops after update {self.timestamp} of {self.updates}: "
                f"all {self.layout.learners} learners are gone"
            )

    def answer(self, child: Connection) -> bool:
        goes_on = super().answer(child)
        if self.leaves and self.stopped and not goes_on:
            self.served.left.append(child.receive_vector(self.x.new_empty(self.leaves)))
        return goes_on

    def take(self, message: Message) -> None:
        d = len(self.x)
        merge(self.sums, {read: row[:d] for read, row in message.sums.items()})
        self.losses += [float(row[d]) for row in message.sums.values()]
        turn = self.protocol.receive(message.entries)
        if turn is not None:
            sums = torch.stack([self.sums[read] for read in sorted(self.sums)])  # [p, d]
            *_, last = message.sums.values()
            self.x = self.served.x = self.update(turn, sums, self.losses, last[d + 1 :])
            self.served.turns.append(turn)
            self.served.losses.append(sum(self.losses) / len(turn.entries))
            self.sums, self.losses, self.timestamp = {}, [], self.protocol.timestamp
            self.tell(self.timestamp, self.x)
            self.stopped = self.timestamp >= self.updates
            self.changed.notify_all()
        if self.protocol.n == 0:
            self.changed.wait_for(lambda: self.over or self.timestamp > message.held)

    def lose(self, rank: int, reason: str) -> None:
        learner = rank - self.layout.first
        with self.changed:
            if learner >= 0:
                self.served.lost[learner] = reason
            if learner < 0 or self.protocol.n == 0 or self.layout.first > 1:
                super().lose(rank, reason)

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

    def __init__(
        self, children: list[Connection], layout: Layout, rank: int, x0: Tensor, parent: Connection, *, waits: bool
    ):
        super().__init__(children, layout, rank, x0, waits=waits)
        self.size, self.parent = layout.servers[rank].size, parent
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
            kind, number, weights = self.parent.exchange(message, self.x)
        except BROKEN:
            kind, number, weights = LOST, self.parent.other, None
        if kind == LOST:
            self.lost = number
        else:
            self.timestamp, self.stopped = number, kind == STOP
            self.x = self.x if weights is None else weights
        self.relayed += 1
        self.changed.notify_all()

    def lose(self, rank: int, reason: str) -> None:
        with self.changed:
            news = not self.over
            super().lose(rank, reason)
            if news:
                with contextlib.suppress(*BROKEN):
                    self.parent.send(FAIL, rank)
