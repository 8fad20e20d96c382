"""Throughput over a shaped link: synchronous, layer-wise and delayed exchange, no communication, and PyTorch DDP.

Two one-thread workers in network namespaces take turns over all methods. Needs Linux and root.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.document import Book, entry
from paper_figures.matex_agd.experiments.link import link
from paper_figures.matex_agd.link_readings import SPEEDS, WORKLOADS
from suite.experiment import Context
from suite.spec import RunSpec

REPEATS = 3  # 2 or more, for the spread


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
