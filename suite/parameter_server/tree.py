"""Rudra-adv and Rudra-adv*: a tree of servers, and a tree of learners down which weights are broadcast.

In both, gradients climb a tree of servers whose leaves stand on the learners' machines. A server adds up one
gradient for each learner beneath it and relays the sum, with the timestamps of its parts, to its parent; the root
updates the weights. Sums carry their number of gradients, so subtrees of unequal size are averaged correctly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import simpy

from reference_impls.contract import GradientRef
from suite.parameter_server.flat import Base, Port, Steps
from suite.parameter_server.topology import Node, receivers, server_tree


@dataclass
class Adv(Base):
    """Rudra-adv: learners push to and pull from the leaf on their machine; leaves relay and pull for them.

    The paper does not say which weights a leaf answers with. Here a learner's pull follows its own gradient up the
    tree, as it follows the push in Rudra-base; that keeps the staleness of adv at that of base, as section 5.5 has
    it, and makes the learners of a leaf wait for each other and for the relay.
    """

    per_leaf: int = 8
    fan_out: int = 8

    def start(self) -> None:
        self.root = server_tree(self.server.workers, self.per_leaf, self.fan_out)
        self.leaf_of: dict[int, Node] = {}
        for node in self.root.below():
            node.port = Port(self.env) if node is not self.root else self.port
            node.gathered = self.env.event()
            self.leaf_of.update(dict.fromkeys(node.learners, node))
        super().start()

    def arrive(self, node: Node, entries: list[GradientRef]) -> None:
        """Gradients have arrived at a server of the tree."""
        if node is self.root:
            self.receive(tuple(entries))
            return
        node.buffer += entries
        if len(node.buffer) >= node.size and node.relaying is None:
            node.relaying = self.env.event()
            self.env.process(self.relay(node))

    def relay(self, node: Node) -> Steps:
        """Send what has gathered to the parent; until it is delivered the server does nothing else."""
        parent = node.parent
        assert parent is not None
        while len(node.buffer) >= node.size:
            entries, node.buffer = node.buffer, []
            gathered, node.gathered = node.gathered, self.env.event()
            yield parent.port.serve(self.messages.transfer)
            self.arrive(parent, entries)
            gathered.succeed()
        relaying, node.relaying = node.relaying, None
        relaying.succeed()

    def refresh(self, node: Node) -> Steps:
        """Make a server's weights as new as the root's, as a learner beneath it wants to pull.

        Requests that meet while the answer is on its way share it.
        """
        parent = node.parent
        if parent is None:
            return
        if node.fetching is not None:
            yield node.fetching
            return
        node.fetching = self.env.event()
        yield from self.refresh(parent)
        yield parent.port.serve(self.messages.inquiry)
        timestamp = self.server.timestamp if parent is self.root else parent.timestamp
        if timestamp != node.timestamp:
            yield parent.port.serve(self.messages.transfer)
            node.timestamp = timestamp
        fetching, node.fetching = node.fetching, None
        fetching.succeed()

    def exchange(self, worker: int, entry: GradientRef) -> Steps:
        server, leaf, copy = self.server, self.leaf_of[worker], self.messages.copy
        while leaf.relaying is not None:
            yield leaf.relaying
        yield leaf.port.serve(copy)
        delivered = leaf.gathered
        self.arrive(leaf, [entry])
        yield delivered
        while server.n == 0 and server.timestamp == entry.read:
            yield self.released
        yield from self.refresh(leaf)
        if leaf.timestamp != entry.read:
            yield leaf.port.serve(copy)
            server.read[worker] = leaf.timestamp


@dataclass
class AdvStar(Adv):
    """Rudra-adv*: besides, weights go down a tree of learners, and two threads of each learner communicate.

    The push thread delivers one gradient before it starts the next, so a learner waits only if its last gradient
    is still on the way. The pull thread fills one buffer while the other is computed with; newer weights are taken
    up by swapping the two. A gradient's timestamp is that of the buffer it was computed on.
    """

    broadcast_fan_out: int = 2
    swap_seconds: float = 0.0

    def start(self) -> None:
        workers = self.server.workers
        if self.server.n == 0:
            raise ValueError("Rudra-adv* does not wait for weights, so it cannot run hardsync; use n of 1 or more")
        self.delivered: list[simpy.Event | None] = [None] * workers
        self.newest_at = [0] * workers  # timestamp in each learner's communication buffer
        self.fresh: dict[int, simpy.Event] = {worker: self.env.event() for worker in range(-1, workers)}
        super().start()
        for sender in range(-1, workers):
            if self.receivers(sender):
                self.env.process(self.broadcast(sender))

    def receivers(self, sender: int) -> list[int]:
        return receivers(sender, self.server.workers, self.broadcast_fan_out)

    def held(self, sender: int) -> int:
        return self.server.timestamp if sender < 0 else self.newest_at[sender]

    def broadcast(self, sender: int) -> Steps:
        """Whenever there are newer weights, send them on, one child after the other."""
        sent, transfer = 0, self.messages.transfer
        while True:
            if self.held(sender) == sent:
                yield self.fresh[sender]
            sent = self.held(sender)
            for child in self.receivers(sender):
                yield self.port.serve(transfer) if sender < 0 else self.env.timeout(transfer)
                self.newest_at[child] = sent
                fresh, self.fresh[child] = self.fresh[child], self.env.event()
                fresh.succeed()

    def updated(self, turn: Any) -> None:
        super().updated(turn)
        fresh, self.fresh[-1] = self.fresh[-1], self.env.event()
        fresh.succeed()

    def exchange(self, worker: int, entry: GradientRef) -> Steps:
        server, pending = self.server, self.delivered[worker]
        if pending is not None:
            yield pending
        self.delivered[worker] = self.env.process(self.deliver(worker, entry))
        if self.newest_at[worker] != server.read[worker]:
            if self.swap_seconds:
                yield self.env.timeout(self.swap_seconds)
            server.read[worker] = self.newest_at[worker]

    def deliver(self, worker: int, entry: GradientRef) -> Steps:
        """The push thread's work on one gradient."""
        leaf = self.leaf_of[worker]
        while leaf.relaying is not None:
            yield leaf.relaying
        yield leaf.port.serve(self.messages.copy)
        self.arrive(leaf, [entry])
        self.delivered[worker] = None


ARCHITECTURES: dict[str, type[Base]] = {"base": Base, "adv": Adv, "adv*": AdvStar}
