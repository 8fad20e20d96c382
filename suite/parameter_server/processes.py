"""Rudra's server and learners as processes over torch.distributed, driven by the same protocol in integers.

Process 0 is the server, process l + 1 is learner l. Every learner has a connection (process group) of its own to
the server, so that one that is lost does not take the others' connections with it. The server listens to each in
a thread; messages are handled one by one. A message is a header of integers, and for gradients and weights the
flat vector after it; a learner asks for the timestamp first and pulls only weights that it does not have.

Under hardsync a lost learner ends the job on every process with :class:`~suite.communication.group.WorkerLost`; under
n-softsync the others go on. A learner counts as lost when its connection breaks, or when it does not answer within
the group's ``timeout``, which must therefore exceed the time of one gradient (and, under hardsync, of the slowest).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor

from reference_impls import rudra
from reference_impls.contract import Optimizer, Turn
from reference_impls.rudra_rates import gradients_per_update
from suite.communication.collectives import Local
from suite.communication.group import Group, WorkerLost

PUSH, INQUIRE, PULL = range(3)  # what a learner wants; then the timestamp of its weights, and its gradient's number
STOP, BROKEN = -1, -2  # answers in place of a timestamp

Gradient = Callable[[Tensor, int, int], tuple[float, Tensor]]
"""(weights [d], learner, number of its mini-batch) -> (loss, gradient [d])."""


@dataclass
class Served:
    """What the server has at the end."""

    x: Tensor  # [d] weights after the last update
    turns: list[Turn]  # the vector clock of every update
    losses: list[float]  # mean loss of each update's gradients
    lost: dict[int, str] = field(default_factory=dict)  # learners that went missing, and how that showed
    unused: int = 0  # gradients that arrived after the last update


class Connection:
    """Headers and vectors between the server and one learner. Made on all processes at once."""

    def __init__(self, group: Group, learner: int):
        # learners are more patient than the server, so that it can tell them that another one is lost
        members, limit = [0, learner + 1], timedelta(seconds=group.timeout * (3 if group.rank else 1))
        self.other = 0 if group.rank else learner + 1
        self.headers = cast(dist.ProcessGroup, dist.new_group(members, timeout=limit, backend="gloo"))
        self.vectors = self.headers
        if group.backend == "nccl":
            self.vectors = cast(dist.ProcessGroup, dist.new_group(members, timeout=limit, backend="nccl"))

    def send(self, *header: int) -> None:
        dist.send(torch.tensor([*header, 0, 0][:3]), self.other, group=self.headers)

    def receive(self) -> list[int]:
        header = torch.zeros(3, dtype=torch.int64)
        dist.recv(header, self.other, group=self.headers)
        return header.tolist()

    def send_vector(self, vector: Tensor) -> None:
        dist.send(vector.contiguous(), self.other, group=self.vectors)

    def receive_vector(self, like: Tensor) -> Tensor:
        vector = torch.empty_like(like)
        dist.recv(vector, self.other, group=self.vectors)
        return vector


def train(
    group: Group,
    n: int,
    x0: Tensor,
    gradient: Gradient,
    *,
    optimizer: Optimizer,
    rate: Callable[[int], float],
    updates: int,
) -> Served | int:
    """Train with ``group.size - 1`` learners; the server returns :class:`Served`, a learner its gradients' number.

    ``n`` is 0 for hardsync. ``x0`` [d] and ``n`` must be the same everywhere. Raises ValueError if they are not or
    there is no learner, WorkerLost when the job cannot go on.
    """
    learners = group.size - 1
    if learners < 1:
        raise ValueError("a server needs at least one learner: start two processes or more")
    gradients_per_update(learners, n)
    group.agree({"n": n, "updates": updates, "parameters": x0.numel(), "sum": float(x0.double().sum())})
    with group.watched():
        connections = [Connection(group, learner) for learner in range(learners)]
    group.heartbeat.stop()  # from here on the connections tell who is lost, and softsync survives it
    if group.rank:
        return _learn(connections[group.rank - 1], group.rank - 1, x0, gradient)
    return _Service(connections, n, x0, optimizer, rate, updates).run()


def _learn(server: Connection, learner: int, weights: Tensor, gradient: Gradient) -> int:
    """calcGradient, pushGradient, then pullWeights if there are newer ones, until the server says stop."""
    read = number = 0
    try:
        while True:
            loss, grad = gradient(weights, learner, number)
            server.send(PUSH, read, number)
            server.send_vector(torch.cat([grad, grad.new_tensor([loss])]))
            number += 1
            server.send(INQUIRE, read)
            timestamp = server.receive()[0]
            if timestamp == STOP:
                return number
            if timestamp == BROKEN:
                raise WorkerLost(f"learner {learner} stops: another learner is gone and hardsync needs all of them")
            if timestamp != read:
                server.send(PULL)
                read = server.receive()[0]
                weights = server.receive_vector(weights)
    except WorkerLost:
        raise
    except (RuntimeError, dist.DistError) as error:
        raise WorkerLost(f"learner {learner} stops after {number} gradients: the server is gone ({error})") from error


class _Service:
    """The server's state and its threads."""

    def __init__(
        self,
        connections: list[Connection],
        n: int,
        x0: Tensor,
        optimizer: Optimizer,
        rate: Callable[[int], float],
        updates: int,
    ):
        self.connections, self.rate, self.updates = connections, rate, updates
        learners = len(connections)
        self.protocol = rudra.Server(learners, n)
        # learners keep the weights they read: no history here
        self.algorithm = rudra.Softsync(optimizer, Local(learners), learners, n)
        self.state = self.algorithm.init(x0)
        self.sums: dict[int, Tensor] = {}  # by timestamp, of the gradients that wait for an update
        self.losses: list[float] = []  # of the same
        self.served = Served(x0, [], [])
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
        self.served.x = self.state.x
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
        """One message; False once the learner has been told to stop."""
        kind, read, number = connection.receive()
        if kind == PUSH:
            vector = connection.receive_vector(torch.cat([self.state.x, self.state.x[:1]]))
            with self.changed:
                self.push(learner, read, number, vector)
                self.changed.notify_all()
            return True
        if kind == INQUIRE:
            with self.changed:
                self.changed.wait_for(lambda: self.over or self.protocol.may_pull(learner))
                reply = BROKEN if self.failure else STOP if self.finished else self.protocol.timestamp
            connection.send(reply)
            return reply >= 0
        with self.changed:
            timestamp, weights = self.protocol.pull(learner), self.state.x
        connection.send(timestamp)
        connection.send_vector(weights)
        return True

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
        gradient, loss = vector[:-1], float(vector[-1])
        self.sums[read] = self.sums[read] + gradient if read in self.sums else gradient
        self.losses.append(loss)
        turn = self.protocol.push(learner)
        if turn is None:
            return
        losses, sums = torch.tensor(self.losses), torch.stack([self.sums[at] for at in sorted(self.sums)])
        rate = torch.tensor(self.rate(turn.t), dtype=vector.dtype, device=vector.device)
        self.state = self.algorithm.update(self.state, turn, losses, sums, rate)
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
