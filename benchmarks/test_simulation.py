"""Events per second of the simulated servers, and how the time of one grows from 30 learners to 3,000.

An event is a gradient pushed and the weights pulled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from benchmarks.alternating import Alternation, Side, Timer
from benchmarks.document import Book, entry
from benchmarks.measuring import OUR_SECONDS, our_seconds
from paper_figures.rudra.settings import CIFAR_BYTES, INTERCONNECT, LATENCY, MEMORY
from reference_impls.rudra import Server
from suite.clock import Link
from suite.parameter_server.flat import Base, Messages
from suite.parameter_server.protocol import GammaDurations, Timed, play
from suite.runner.execute import spare_imports

FEW, MANY = 30, 3_000  # learners
SPLITS = ("hardsync", "1-softsync", "lambda-softsync")
KINDS = ("integers", "messages")  # the protocol alone, or with a network and a server's memory
EVENTS, ROUNDS = 30_000, 5


def schedule(kind: str, learners: int, n: int) -> Iterator[Timed]:
    """Updates in virtual time, without end."""
    durations = GammaDurations(1.0, 0.05, 0)
    if kind == "integers":
        return play(Server(learners, n), learners, durations)
    costs = Messages(CIFAR_BYTES, Link(LATENCY, INTERCONNECT), Link(*MEMORY), 1e-5)
    return iter(Base(Server(learners, n), durations, costs))


def events(kind: str, learners: int, split: str) -> Callable[[int], None]:
    """A call that lets about so many events happen, in steady state from the start."""
    n = {"hardsync": 0, "1-softsync": 1, "lambda-softsync": learners}[split]
    each = learners // max(n, 1)  # events of an update
    made = schedule(kind, learners, n)
    for _ in islice(made, max(1, 2 * learners // each)):
        pass

    def run(count: int) -> None:
        for _ in islice(made, max(1, count // each)):
            pass

    return run


@pytest.mark.benchmark(group="simulation", timer=our_seconds)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("kind", KINDS)
def test_events(kind: str, split: str, benchmark: Any, book: Book) -> None:
    spare_imports("rudra/protocol")  # as the suite does before a simulation
    few, many = f"{FEW} learners", f"{MANY} learners"
    turns = Alternation({few: Side(events(kind, FEW, split)), many: Side(events(kind, MANY, split))}, Timer())
    turns.updates = EVENTS
    OUR_SECONDS.watch(turns, many)
    benchmark.pedantic(turns.round, rounds=ROUNDS)
    name = f"simulated server, {kind}, {split}"
    book.add(name, entry("simulation", turns.samples(), unit="seconds per event", examples=1))
    benchmark.extra_info["learners"] = [FEW, MANY]
