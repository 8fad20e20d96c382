"""Rudra's servers in virtual time, message by message, and how they are made of plain settings.

*Base* is one server, *adv* a tree of servers, *adv** besides a tree of learners down which weights are broadcast.
Built on simpy. A learner is a process that computes, pushes and pulls; a :class:`Port` works through messages one
by one in the order they come. Which gradients make an update is decided by the protocol in integers, so the turns
that come out can drive real gradients, or be counted bare. Source: rudra, sections 3.2 and 3.3.

In both trees gradients climb servers whose leaves stand on the learners' machines. A server adds up one gradient for
each learner beneath it and relays the sum, with the timestamps of its parts, to its parent; the root updates the
weights. Sums carry their number of gradients, so subtrees of unequal size are averaged correctly.

Seconds are virtual throughout; sizes are bytes. Settings::

    architecture     "base", "adv" or "adv*"
    seconds          {per_call, per_example, crowding, jitter}: one gradient's time, see :func:`learner_seconds`
    machines         machines that the learners are dealt over, one after the other
    model_bytes, network [latency, bytes per second], memory [latency, bytes per second], update_seconds
    tree             {per_leaf, fan_out, broadcast_fan_out, swap_seconds}   (adv and adv*; optional)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import simpy

from reference_impls.contract import GradientRef, Turn
from reference_impls.rudra_protocol import Server
from suite.clock import Link
from suite.parameter_server.protocol import GammaDurations, Timed, TimeLedger
from suite.parameter_server.topology import Node, receivers, server_tree
from suite.spec import thaw

Steps = Generator[simpy.Event, Any, None]

TIMESTAMP_BYTES = 4  # a push or a pull carries one scalar besides the model; an inquiry carries nothing else


@dataclass(frozen=True)
class Messages:
    """What messages and updates cost.

    ``network`` carries one message between two machines and occupies the receiver's (or sender's) port at the
    server for as long; ``memory`` copies between processes of one machine.
    """

    model_bytes: int
    network: Link
    memory: Link
    update_seconds: float = 0.0  # the server applies one update

    @property
    def transfer(self) -> float:
        """Seconds of a push or a pull through the network."""
        return self.network.seconds(self.model_bytes + TIMESTAMP_BYTES)

    @property
    def inquiry(self) -> float:
        """Seconds of a question for the timestamp."""
        return self.network.seconds(TIMESTAMP_BYTES)

    @property
    def copy(self) -> float:
        """Seconds of a push or a pull between a learner and a server on the same machine."""
        return self.memory.seconds(self.model_bytes + TIMESTAMP_BYTES)


class Port:
    """Works through messages one by one, in the order they come: a queue with one server, without the queue.

    The end of a message is known when it comes, so one timeout stands for waiting and service together.
    """

    def __init__(self, env: simpy.Environment):
        self.env, self.free = env, 0.0  # free: when the last message will have been worked through

    def serve(self, seconds: float) -> simpy.Timeout:
        """An event at the end of a message that takes ``seconds`` and comes now."""
        now = self.env.now
        self.free = (self.free if self.free > now else now) + seconds
        return self.env.timeout(self.free - now)

    def occupy(self, seconds: float) -> None:
        """Work that nobody waits for, but that delays the messages behind it."""
        self.free = max(self.free, self.env.now) + seconds


@dataclass
class Base:
    """Rudra-base: every learner talks to one server. Pushes and pulls block the learner."""

    server: Server
    duration: Callable[[int], float]
    messages: Messages
    ledger: TimeLedger = field(default_factory=TimeLedger)

    def __post_init__(self) -> None:
        self.env = simpy.Environment()
        self.port = Port(self.env)
        self.turns: deque[Timed] = deque()
        self.released = self.env.event()  # hardsync: the update that this round waits for
        self.start()

    def start(self) -> None:
        for worker in range(self.server.workers):
            self.env.process(self.learn(worker))

    def __iter__(self) -> Iterator[Timed]:
        """Endless updates in the order of virtual time."""
        turns, step = self.turns, self.env.step
        while True:
            while not turns:
                step()
            yield turns.popleft()

    def receive(self, entries: tuple[GradientRef, ...]) -> None:
        """Gradients have arrived at the server that holds the weights."""
        turn = self.server.receive(entries)
        if turn is not None:
            if self.messages.update_seconds:
                self.port.occupy(self.messages.update_seconds)
            self.updated(turn)

    def updated(self, turn: Turn) -> None:
        self.turns.append((self.env.now, turn))
        released, self.released = self.released, self.env.event()
        released.succeed()

    def learn(self, worker: int) -> Steps:
        """getMinibatch is overlapped; calcGradient, pushGradient, pullWeights follow one another."""
        env, server = self.env, self.server
        while True:
            seconds = self.duration(worker)
            entry = server.begin(worker)
            yield env.timeout(seconds)
            began = env.now
            yield from self.exchange(worker, entry)
            self.ledger.cycle(seconds, env.now - began)

    def exchange(self, worker: int, entry: GradientRef) -> Steps:
        """Push a gradient and pull weights, if there are newer ones."""
        server, serve, transfer = self.server, self.port.serve, self.messages.transfer
        yield serve(transfer)
        self.receive((entry,))
        if not server.may_pull(worker):
            yield self.released
        yield serve(self.messages.inquiry)
        if server.timestamp != entry.read:
            yield serve(transfer)
            server.pull(worker)


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


def placement(learners: int, machines: int) -> list[int]:
    """How many learners, itself included, share each learner's machine: [learners].

    Learners are dealt out in turn, so that numbers differ by at most one.
    """
    whole, rest = divmod(learners, machines)
    return [whole + (learner % machines < rest) for learner in range(learners)]


def learner_seconds(seconds: Mapping[str, float], batch: int, learners: int, machines: int) -> list[float]:
    """Mean seconds of one gradient of each learner: (per_call + per_example b) (1 + crowding (sharers - 1))."""
    alone = seconds["per_call"] + seconds["per_example"] * batch
    return [alone * (1 + seconds["crowding"] * (sharers - 1)) for sharers in placement(learners, machines)]


def simulation(settings: Mapping[str, Any], learners: int, n: int, batch: int, run_seed: int) -> Base:
    """A server with its learners, ready to be iterated over. Raises ValueError for an unknown architecture."""
    values = thaw(settings)
    name = values["architecture"]
    if name not in ARCHITECTURES:
        raise ValueError(f"architecture={name!r} must be one of {sorted(ARCHITECTURES)}")
    tree = values.get("tree", {})
    if name == "base" and tree:
        raise ValueError("architecture 'base' has one server and takes no tree; drop it or choose 'adv' or 'adv*'")
    seconds = values["seconds"]
    durations = GammaDurations(
        learner_seconds(seconds, batch, learners, values["machines"]), seconds["jitter"], run_seed
    )
    messages = Messages(
        values["model_bytes"], Link(*values["network"]), Link(*values["memory"]), values["update_seconds"]
    )
    return ARCHITECTURES[name](Server(learners, n), durations, messages, **tree)
