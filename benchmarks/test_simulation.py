"""Events per second of the simulated servers, and how the time of one grows from 30 learners to 3,000."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.alternating import Alternation, Side, Timer
from benchmarks.document import Book, entry
from benchmarks.measuring import OUR_SECONDS, our_seconds
from benchmarks.simulation import FEW, KINDS, MANY, SPLITS, events
from suite.runner.execute import spare_imports

EVENTS, ROUNDS = 30_000, 5


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
