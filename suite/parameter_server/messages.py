"""Who is connected to whom among servers and learners that are processes, and the messages that pass between them.

A push is a header of integers, the gradients' references, and sums of gradients by timestamp; it is answered with a
header, and with weights where there are newer ones.

Vectors travel over gloo, from and to the host also where they lie on GPUs: a lost learner shows there as an error of
its own connection, while under NCCL it would end the server, and a communicator for each learner on the server's one
GPU can wait for another for ever.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import chain
from typing import NamedTuple, cast

import torch
import torch.distributed as dist
from torch import Tensor

from reference_impls.contract import GradientRef
from suite.communication.group import Group
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
