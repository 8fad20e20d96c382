"""What exchanging gradients takes: events of the simulated servers, and throughput over a shaped link.

An event is a gradient pushed and the weights pulled; how its time grows from 30 learners to 3,000. Over the link two
one-thread workers in network namespaces take turns over synchronous, layer-wise and delayed exchange, no
communication, and PyTorch DDP: that needs Linux and root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from benchmarks.alternating import Alternation, Side, Timer
from benchmarks.document import Book, entry
from benchmarks.measuring import OUR_SECONDS, our_seconds
from paper_figures.matex_agd.exchanges import SPEEDS, WORKLOADS
from paper_figures.matex_agd.experiments.link import link
from paper_figures.rudra.settings import CIFAR_BYTES, INTERCONNECT, LATENCY, MEMORY
from reference_impls.rudra_protocol import Server
from suite.clock import Link
from suite.experiment import Context
from suite.parameter_server.flat import Base, Messages
from suite.parameter_server.protocol import GammaDurations, Timed, play
from suite.runner.execute import spare_imports
from suite.spec import RunSpec

FEW, MANY = 30, 3_000  # learners
SPLITS = ("hardsync", "1-softsync", "lambda-softsync")
KINDS = ("integers", "messages")  # the protocol alone, or with a network and a server's memory
EVENTS, ROUNDS = 30_000, 5
REPEATS = 3  # of the link's turns: 2 or more, for the spread


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


@pytest.mark.benchmark(group="link")
@pytest.mark.slow
def test_link(benchmark: Any, book: Book) -> None:
    spec = RunSpec("matex_agd/link", {"speeds": list(SPEEDS), "repeats": REPEATS})
    done = benchmark.pedantic(lambda: link(spec, Context(Path("."), {})), rounds=1)
    if done.results["skipped"]:
        pytest.skip(done.results["skipped"])
    for workload, title in WORKLOADS.items():
        rows = done.curves[workload]
        for speed, block in rows.groupby("speed"):
            wide = block.pivot(index="repeat", columns="method", values="seconds").dropna()
            sides = {
                str(method): {"seconds": [float(s) for s in wide[method]], "processor": None, "threads": 2}
                for method in wide.columns
            }
            name = f"link, {title}, {speed / 1e6:g} Mbit/s"
            book.add(name, entry("link", sides, unit="seconds per iteration", examples=1))
