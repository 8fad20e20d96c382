"""Updates of every workload: ours beside the plain loop and its compiled form.

    nox -s benchmark                                      everything that suits this machine
    nox -s benchmark -- --only 'LeNet.*M=16' --rivals plain    some of it
    nox -s benchmark -- --heavy --out other.json          large networks on a CPU too

The ratios of the document are printed at the end.
"""

from __future__ import annotations

import psutil
import pytest

from benchmarks import ours
from benchmarks.document import Book, entry
from benchmarks.measuring import Effort, stolen_percent
from benchmarks.sides import prepared
from benchmarks.workloads import WORKLOADS, Workload

pytestmark = pytest.mark.filterwarnings("default")  # compilers warn; a measurement is none the worse for it
DEVICES = (pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_update(workload: Workload, device: str, book: Book, effort: Effort) -> None:
    """Time a workload and write it down."""
    turns, absent, rounds = prepared(workload, effort)
    try:
        before = psutil.cpu_times()
        for _ in range(rounds):
            turns.round()
        stolen = stolen_percent(before, psutil.cpu_times())
        made = entry(
            workload.family,
            {**turns.samples(), **absent},
            examples=workload.examples,
            flops=ours.flops(workload),
            bytes=ours.least_bytes(workload),
            calls=ours.calls(workload),
            telemetry={"cpu": {"stolen_percent": {"median": stolen}}},  # where older documents have it
            gradients=workload.gradients,
            updates_per_sample=turns.updates,
        )
        book.add(workload.name, made)
    finally:
        turns.close()
