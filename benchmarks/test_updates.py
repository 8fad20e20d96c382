"""Updates of every workload: ours beside the plain loop and its compiled form.

    nox -s benchmark                                      everything that suits this machine
    nox -s benchmark -- --only 'LeNet.*M=16' --rivals plain    some of it
    nox -s benchmark -- --heavy --out other.json          large networks on a CPU too

The ratios of the document are printed at the end.
"""

from __future__ import annotations

import pytest

from benchmarks.document import Book
from benchmarks.measuring import Effort, finished
from benchmarks.sides import prepared
from benchmarks.workloads import WORKLOADS, Workload
from suite.runs.telemetry import Watch

pytestmark = pytest.mark.filterwarnings("default")  # compilers warn; a measurement is none the worse for it
DEVICES = (pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu))


def measure(workload: Workload, book: Book, effort: Effort) -> None:
    """Time a workload and write it down."""
    turns, absent, rounds = prepared(workload, effort)
    try:
        with Watch(effort.device) as watch:
            for _ in range(rounds):
                turns.round()
        book.add(workload.name, finished(workload, turns, absent, watch.seen()))
    finally:
        turns.close()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_update(workload: Workload, device: str, book: Book, effort: Effort) -> None:
    measure(workload, book, effort)
