"""Options of ``pytest benchmarks``, and the document that all benchmarks of a session write."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.document import Book
from benchmarks.floors import faster, floors
from benchmarks.measuring import Effort
from suite.lazy import torch
from suite.report.speed import table
from suite.speed.baselines import GateError, read
from suite.training.numerics import pick_device


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("workloads")
    group.addoption("--out", type=Path, default=Path("benchmark.json"), help="document to write or to go on with")
    group.addoption(
        "--rivals",
        default="plain,forms,compiled,jax",
        help="which rivals take part: plain, forms, compiled, jax; commas between",
    )
    group.addoption("--seconds", type=float, default=15.0, help="time of one workload's rounds, about")
    group.addoption("--only", default="", help="workloads whose name this regular expression finds")
    group.addoption("--heavy", action="store_true", help="on a CPU too, workloads of many seconds per update")
    group.addoption("--compile-all", action="store_true", help="compile every workload, not LeNet alone")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what ``--only`` does not find (-k takes no ``=`` and ``/``); skip what does not suit this machine."""
    wanted = re.compile(config.getoption("only"))
    left_out = [item for item in items if not wanted.search(item.name)]
    if left_out:
        items[:] = [item for item in items if wanted.search(item.name)]
        config.hook.pytest_deselected(items=left_out)
    for item in items:
        if why := unsuitable(getattr(item, "callspec", None), config.getoption("heavy")):
            item.add_marker(pytest.mark.skip(reason=why))


def unsuitable(call: Any, heavy: bool) -> str:
    """Why a benchmark is not for this machine, or nothing. Those for CUDA say so themselves, by their mark."""
    params = call.params if call else {}
    if params.get("device") != "cpu":
        return ""
    if pick_device("auto") == "cuda":
        return "this machine has CUDA, where the same workload is timed on the GPU"
    if params["workload"].heavy and not heavy:
        return "many seconds per update on a CPU: give --heavy to time it there"
    return ""


@pytest.fixture(scope="session")
def effort(request: pytest.FixtureRequest) -> Effort:
    from benchmarks.sides import RIVALS, thread_counts

    option = request.config.getoption
    rivals = tuple(part for part in option("rivals").split(",") if part)
    if unknown := set(rivals) - set(RIVALS):
        raise pytest.UsageError(f"--rivals {','.join(sorted(unknown))}: choose among {', '.join(RIVALS)}")
    device = pick_device("auto")
    return Effort(device, option("seconds"), rivals, thread_counts(device), option("compile_all"))


@pytest.fixture(scope="session")
def document(request: pytest.FixtureRequest, effort: Effort) -> Book:
    """The session's document, with the floors of its device."""
    try:
        made = Book(request.config.getoption("out"), effort.device)
    except GateError as error:
        pytest.exit(str(error), returncode=2)
    best = None
    for threads in effort.threads:
        found = floors(effort.device, threads)
        best = faster(best, found) if best else found  # what one thread reaches, more can reach as well
        made.add_floor(effort.device if effort.device == "cuda" else str(threads), best)
    return made


@pytest.fixture
def book(document: Book, effort: Effort) -> Iterator[Book]:
    """The document; what a workload held is freed before the next is built."""
    yield document
    gc.collect()
    if effort.device == "cuda":
        torch.cuda.empty_cache()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The document's table, where this session wrote to it."""
    if terminalreporter.stats.get("passed") and (path := config.getoption("out")).exists():
        terminalreporter.write_line(table(read(path)))
