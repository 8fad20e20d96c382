"""Rudra's server and learners as processes over torch.distributed, driven by the same protocol in integers.

Process 0 is the server, process l + 1 is learner l. Every learner has a connection (process group) of its own to
the server, so that one that is lost does not take the others' connections with it. The server listens to each in
a thread; messages are handled one by one. A message is a header of integers, and for gradients and weights the
flat vector after it; a learner asks for the timestamp first and pulls only weights that it does not have.

Under hardsync a lost learner ends the job on every process with :class:`~suite.communication.group.WorkerLost`; under
n-softsync the others go on. A learner counts as lost when its connection breaks, or when it does not answer within
the group's ``timeout``, which must therefore exceed the time of one gradient (and, under hardsync, of the slowest).

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
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor

from reference_impls import rudra, rudra_protocol
from reference_impls.contract import Optimizer, Turn
from suite.communication.collectives import Local
from suite.communication.group import Group, WorkerLost

PUSH, INQUIRE, PULL, LEAVE, FAIL = range(
    5
)  # what a learner wants; then the timestamp it holds, its gradient's number
STOP, BROKEN = -1, -2  # answers in place of a timestamp
AWAITED = 3.0  # seconds in which a server takes a failed learner's last word, if it listens

Update = Callable[[Turn, Tensor, list[float], Tensor], Tensor]
"""(clock, sums of gradients [p, d], their losses, notes [e] that came with the last) -> new weights [d]."""


@dataclass
class Served:
    """What the server has at the end."""

    x: Tensor  # [d] weights after the last update
    turns: list[Turn] = field(default_factory=list)  # the vector clock of every update
    losses: list[float] = field(default_factory=list)  # mean loss of each update's gradients
    lost: dict[int, str] = field(default_factory=dict)  # learners that went missing, and how that showed
    unused: int = 0  # gradients that arrived after the last update
    left: list[Tensor] = field(default_factory=list)  # [q] what each learner left behind when it was told to stop


class Connection:
    """Headers and vectors between two processes. Made on all processes at once."""

    def __init__(self, group: Group, upper: int, lower: int):
        # who is further from the server is more patient, so that it can be told who is lost
        patience = timedelta(seconds=group.timeout * (3 if group.rank == lower else 1))
        self.other = lower if group.rank == upper else upper
        self.gloo = cast(dist.ProcessGroup, dist.new_group([upper, lower], timeout=patience, backend="gloo"))

    def send(self, *header: int) -> None:
        dist.send(torch.tensor([*header, 0, 0][:3]), self.other, group=self.gloo)

    def receive(self) -> list[int]:
        header = torch.zeros(3, dtype=torch.int64)
        dist.recv(header, self.other, group=self.gloo)
        return header.tolist()

    def send_vector(self, vector: Tensor) -> None:
        dist.send(vector.cpu().contiguous(), self.other, group=self.gloo)

    def receive_vector(self, like: Tensor) -> Tensor:
        vector = torch.empty_like(like, device="cpu")
        dist.recv(vector, self.other, group=self.gloo)
        return vector.to(like.device)


def updating(x0: Tensor, n: int, learners: int, optimizer: Optimizer, rate: Callable[[int], float]) -> Update:
    """The server's update, which keeps state and weights from one call to the next."""
    algorithm = rudra.Softsync(optimizer, Local(learners), learners, n)  # learners keep what they read: no history
    state = algorithm.init(x0)

    def update(turn: Turn, sums: Tensor, losses: list[float], notes: Tensor) -> Tensor:
        nonlocal state
        lr = torch.tensor(rate(turn.t), dtype=x0.dtype, device=x0.device)
        state = algorithm.update(state, turn, torch.tensor(losses), sums, lr)
        return state.x

    return update


def connect(group: Group, facts: dict[str, Any], x0: Tensor) -> list[Connection]:
    """A connection for each learner, once all processes agree on ``facts`` and on the weights x0 [d].

    Raises ValueError if they do not, or where there is no learner.
    """
    learners = group.size - 1
    if learners < 1:
        raise ValueError("a server needs at least one learner: start two processes or more")
    group.agree({**facts, "parameters": x0.numel(), "sum": float(x0.double().sum())})
    with group.watched():
        connections = [Connection(group, 0, learner + 1) for learner in range(learners)]
    group.heartbeat.stop()  # from here on the connections tell who is lost, and softsync survives it
    return connections


class Learner:
    """A learner's side: pushGradient, then pullWeights if there are newer ones, until the server says stop.

    Once ``stopped`` it holds the weights after the last update. What ``leaves`` returns, a vector [q] in the type of
    the weights, stays with the server then. Every exchange raises WorkerLost when the server is gone, or stops since
    another learner is.
    """

    def __init__(self, server: Connection, learner: int, leaves: Callable[[], Tensor] | None = None):
        self.server, self.learner, self._leaves = server, learner, leaves
        self.timestamp = self.number = 0  # updates behind the weights it holds, gradients pushed
        self.stopped = False

    def exchange(self, vector: Tensor, weights: Tensor) -> Tensor:
        """Push a gradient with its loss, and notes, [d + 1 + e] of ``weights``; the weights [d] to go on with."""
        try:
            return self._exchange(vector, weights)
        except (RuntimeError, dist.DistError) as error:
            if isinstance(error, WorkerLost):
                raise
            reason = str(error).partition("\n")[0]
            raise WorkerLost(
                f"learner {self.learner} stops after gradient {self.number}: the server, process 0, is gone: {reason}"
            ) from error

    def fail(self) -> None:
        """Say that this learner ends before it was told to stop, so that the server need not wait to find out."""
        with contextlib.suppress(RuntimeError, dist.DistError):
            message = dist.isend(torch.tensor([FAIL, 0, 0]), self.server.other, group=self.server.gloo)
            if message is not None:
                message.wait(timedelta(seconds=AWAITED))  # it may not be listening

    def _exchange(self, vector: Tensor, weights: Tensor) -> Tensor:
        server = self.server
        server.send(PUSH, self.timestamp, self.number)
        server.send_vector(vector)
        self.number += 1
        server.send(INQUIRE, self.timestamp)
        timestamp = server.receive()[0]
        if timestamp == BROKEN:
            raise WorkerLost(
                f"learner {self.learner} stops: another learner is gone, and hardsync needs all of them, "
                "or the server met an error"
            )
        if timestamp == STOP:
            self.stopped = True
            left = weights.new_zeros(0) if self._leaves is None else self._leaves()
            server.send(LEAVE, left.numel())
            if left.numel():
                server.send_vector(left)
        elif timestamp == self.timestamp:
            return weights
        else:
            server.send(PULL)
        self.timestamp = server.receive()[0]
        return server.receive_vector(weights)


class Service:
    """The server's side: a thread for each learner, whose messages are handled one by one.

    ``update`` must not write to the weights that it returned before: they may be on their way to a learner.
    ``notes`` numbers come with each gradient and its loss.
    """

    def __init__(
        self,
        connections: list[Connection],
        n: int,
        x0: Tensor,
        update: Update,
        updates: int,
        notes: int = 0,
    ):
        self.connections, self.update, self.updates, self.notes = connections, update, updates, notes
        self.protocol = rudra_protocol.Server(len(connections), n)
        self.sums: dict[int, Tensor] = {}  # by timestamp, of the gradients that wait for an update
        self.losses: list[float] = []  # of the same
        self.served = Served(x0)
        self.changed = threading.Condition()
        self.failure: BaseException | None = None

    def run(self) -> Served:
        threads = [threading.Thread(target=self.listen, args=(learner,)) for learner in range(len(self.connections))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failure:
            raise self.failure
        if not self.finished:
            raise WorkerLost(
                f"the server stops after update {self.protocol.timestamp} of {self.updates}: "
                f"all {len(self.connections)} learners are gone"
            )
        return self.served

    @property
    def finished(self) -> bool:
        return self.protocol.timestamp >= self.updates

    def listen(self, learner: int) -> None:
        """Handle one learner's messages until it is told to stop or is lost."""
        connection = self.connections[learner]
        try:
            while self.answer(learner, connection):
                pass
        except (RuntimeError, dist.DistError) as error:
            self.lose(learner, str(error).partition("\n")[0])
        except BaseException as error:
            with self.changed:
                self.failure = self.failure or error
                self.changed.notify_all()

    def answer(self, learner: int, connection: Connection) -> bool:
        """One message; False once the learner has left."""
        kind, read, number = connection.receive()
        if kind == FAIL:
            raise RuntimeError("an error ended it")
        if kind == PUSH:
            vector = connection.receive_vector(self.served.x.new_empty(len(self.served.x) + 1 + self.notes))
            with self.changed:
                try:
                    self.push(learner, read, number, vector)
                except Exception as error:  # this learner too is told, when it inquires
                    self.failure = self.failure or error
                self.changed.notify_all()
            return True
        if kind == INQUIRE:
            with self.changed:
                self.changed.wait_for(lambda: self.over or self.protocol.may_pull(learner))
                reply = BROKEN if self.failure else STOP if self.finished else self.protocol.timestamp
            connection.send(reply)
            return reply != BROKEN
        if kind == LEAVE and read:
            self.served.left.append(connection.receive_vector(self.served.x.new_empty(read)))
        with self.changed:
            timestamp = self.protocol.timestamp if kind == LEAVE else self.protocol.pull(learner)
            weights = self.served.x
        connection.send(timestamp)
        connection.send_vector(weights)
        return kind != LEAVE

    @property
    def over(self) -> bool:
        return self.finished or self.failure is not None

    def push(self, learner: int, read: int, number: int, vector: Tensor) -> None:
        """Add a gradient; apply the update that it completes."""
        if self.over:
            self.served.unused += 1
            return
        held = (self.protocol.read[learner], self.protocol.number[learner])
        if (read, number) != held:
            raise ValueError(
                f"learner {learner} pushed gradient {number} of timestamp {read}; "
                f"the server expects {held[1]} of {held[0]}"
            )
        gradient, loss, notes = vector.split([len(self.served.x), 1, self.notes])
        self.sums[read] = self.sums[read] + gradient if read in self.sums else gradient
        self.losses.append(float(loss))
        turn = self.protocol.push(learner)
        if turn is None:
            return
        sums = torch.stack([self.sums[at] for at in sorted(self.sums)])
        self.served.x = self.update(turn, sums, self.losses, notes)
        self.served.turns.append(turn)
        self.served.losses.append(sum(self.losses) / len(self.losses))
        self.sums, self.losses = {}, []

    def lose(self, learner: int, reason: str) -> None:
        with self.changed:
            self.served.lost[learner] = reason
            if self.protocol.n == 0 and not self.over:
                self.failure = WorkerLost(
                    f"the server stops at update {self.protocol.timestamp} of {self.updates}: learner {learner} of "
                    f"{len(self.connections)} is gone and hardsync needs all of them ({reason})"
                )
            self.changed.notify_all()
