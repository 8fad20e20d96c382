"""From a workload to its entry in the document: build its sides, leave hopeless ones out, let the rest take turns."""

from __future__ import annotations

import gc
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.alternating import Alternation, Timer
from benchmarks.workloads import Workload

SAMPLE = 0.02  # seconds that a sample of the fastest side fills at least
# Rounds of a workload. The fastest of several equal sides in three rounds is some percent faster than any of them is.
FEWEST, MOST = 9, 60
LONG = 2.0  # seconds of an update above which a side takes no part, unless it is the fastest of its kind


@dataclass(frozen=True)
class Effort:
    """What to time, and for how long."""

    device: str
    seconds: float  # of all rounds of a workload together, about
    rivals: Collection[str]
    threads: Sequence[int]
    heavy: bool = False
    compile_all: bool = False


def prepared(workload: Workload, effort: Effort) -> tuple[Alternation, dict[str, str], int]:
    """Sides that are built and warm, reasons for those that are not there, and how many rounds to make."""
    from benchmarks.sides import build
    from suite.spec import RunSpec
    from suite.training.numerics import apply, choose

    apply(choose(RunSpec("train"), effort.device, 1))
    sides, absent = build(workload, effort.device, effort.rivals, effort.threads, effort.compile_all)
    turns = Alternation(sides, Timer(effort.device))
    gone = turns.warm(workload.block, SAMPLE, hopeless)
    absent |= {name: why for name, why in hopeless(turns.warmed).items() if name in gone}
    round_seconds = turns.updates * sum(turns.warmed[name] for name in turns.sides)
    return turns, absent, min(MOST, max(FEWEST, round(effort.seconds / round_seconds)))


def hopeless(seconds: Mapping[str, float]) -> dict[str, str]:
    """Sides that take too long to be timed in rounds, with the reason; never the fastest of their kind.

    A kind is ours, a library's or a plain loop, on so many threads: the strongest that a user could write on the same
    cores is always there to be compared with.
    """
    best: dict[tuple[str, str], str] = {}
    for name in sorted(seconds, key=lambda name: seconds[name]):
        best.setdefault(kind_of(name), name)
    kept = set(best.values())
    found = {}
    for name, taken in seconds.items():
        if taken > LONG and name not in kept:
            least = seconds[best[kind_of(name)]]
            found[name] = f"{taken:.3g} s an update when warmed up; the fastest of its kind takes {least:.3g} s"
    return found


def kind_of(name: str) -> tuple[str, str]:
    """What a side is, and on how many threads: ``plain channels-last, 2 threads`` is a plain loop on two."""
    what, _, threads = name.partition(", ")
    words = what.split()
    return next((kind for kind in ("ours", "compiled", "jax") if kind in words), "plain"), threads


def finished(
    workload: Workload, turns: Alternation, absent: Mapping[str, str], telemetry: Mapping[str, Any]
) -> dict[str, Any]:
    """The workload's entry: samples, what an update costs at least, memory of a replica."""
    from benchmarks import counting, ours
    from benchmarks.document import entry
    from benchmarks.floors import product_seconds

    sides: dict[str, Any] = turns.samples()
    sides |= {name: {"not_available": why} for name, why in absent.items()}
    grows = {"axis": list(workload.axis)} if workload.axis else {}
    memory = None
    if workload.family in ("training", "averaging"):
        memory = ours.replica_bytes(workload, turns.sides["ours"].execution)
    device = turns.sides["ours"].execution["device"]
    threads = sorted({side.threads for side in turns.sides.values()})
    products = {str(n) if device == "cpu" else device: product_seconds(workload, device, n) for n in threads}
    return entry(
        "growth" if workload.axis else workload.family,
        sides,
        examples=workload.examples,
        flops=counting.flops(workload),
        bytes=counting.least_bytes(workload),
        products=products,
        calls=counting.calls(workload),
        memory_per_replica_bytes=memory,
        telemetry=dict(telemetry),
        gradients=workload.gradients,
        updates_per_sample=turns.updates,
        **grows,
    )


def collect_garbage(device: str) -> None:
    """Free what the last workload held before the next is built."""
    gc.collect()
    if device == "cuda":
        import torch

        torch.cuda.empty_cache()
