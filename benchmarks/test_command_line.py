"""The command line's start, and what a large store costs it.

``list`` beside ``python -c "import typer, rich"`` (at most 3 times is wanted), and ``list`` and ``check`` on a store
of ten times as many runs (at most 15 times). A sample is one process from start to end.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks.document import Book, entry
from benchmarks.measuring import Alternation, Side, timed
from suite.runs.environment import ROOT
from suite.runs.run import Outcome, encode
from suite.runs.store import Store
from suite.spec import RunSpec

ROUNDS, RUNS = 5, 500


def command(*words: str) -> Callable[[int], None]:
    """A call that runs a Python process so many times; a check may find something red, and that is no failure."""

    def run(count: int) -> None:
        for _ in range(count):
            done = subprocess.run([sys.executable, *words], cwd=ROOT, stdout=subprocess.DEVNULL)
            assert done.returncode in (0, 1), f"{words} failed with exit code {done.returncode}"

    return run


def compare(name: str, ours: Sequence[str], other: tuple[str, Sequence[str]], book: Book) -> None:
    """Let two commands take turns."""
    sides = {"ours": Side(command(*ours)), other[0]: Side(command(*other[1]))}
    turns = Alternation(sides, timed)
    for side in sides.values():
        turns.timer(side, 1)  # caches of the file system
    for _ in range(ROUNDS):
        turns.round()
    samples = {side: {**made, "processor": None} for side, made in turns.samples().items()}  # another process's work
    book.add(name, entry("command line", samples, unit="seconds per command", examples=1))


def test_start(book: Book) -> None:
    imports = ("import typer, rich", ["-c", "import typer, rich"])
    compare("list", ["-m", "suite", "list"], imports, book)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Stores of real, verified runs by their number."""
    made = {}
    for count in (RUNS, 10 * RUNS):
        made[count] = tmp_path_factory.mktemp(f"store-{count}")
        store = Store(made[count], create=True)
        for i in range(count):
            spec = RunSpec("benchmark", {"number": i})
            store.commit(spec.id, encode(spec, {}, Outcome("finished", {"value": float(i)})))
    return made


@pytest.mark.parametrize("verb", ["list", "check"])
def test_large_store(verb: str, stores: dict[int, Path], book: Book) -> None:
    large, small = (["-m", "suite", verb, "--store", str(stores[count])] for count in (10 * RUNS, RUNS))
    compare(f"{verb}, {10 * RUNS} runs", large, (f"{RUNS} runs", small), book)
