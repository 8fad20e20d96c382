"""Rudra's servers in virtual time, message by message: base, adv (a tree of servers), adv* (a broadcast tree).

Built on simpy. A learner is a process that computes, pushes and pulls; a :class:`Port` works through messages one
by one in the order they come. Which gradients make an update is decided by the protocol in integers, so the turns
that come out can drive real gradients, or be counted bare. Source: rudra, sections 3.2 and 3.3.

Seconds are virtual throughout; sizes are bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import simpy

from reference_impls.contract import GradientRef, Turn
from reference_impls.rudra_protocol import Server
from suite.clock import Link
from suite.parameter_server.protocol import Timed, TimeLedger

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
