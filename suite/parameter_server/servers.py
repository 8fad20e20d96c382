"""The servers of a tree of processes: the root, which updates the weights, and those beneath it, which sum."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from reference_impls import rudra_protocol
from reference_impls.contract import GradientRef, Turn
from suite.communication.group import WorkerLost
from suite.parameter_server.messages import BROKEN, FAIL, GO, LOST, STOP, Connection, Layout, Message, Sums, merge

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
