"""Where the time of an update goes for networks whose gradients the framework's own layers compute.

``python -m benchmarks.parts [WORKLOAD ...] [--updates N]`` prints a table. Such an update is as fast as its rivals'
unless something of ours adds to it. Four parts are told apart: ``gradient``, forward and backward through the layers;
``step``, torch's fused kernel of the solver; ``examples``, gathering and decoding them; ``rest``, all else: the
algorithm, copies of gradients, curves, schedule. Rivals have the first two as well, on examples that lie ready.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from benchmarks import ours
from benchmarks.sides import cores
from benchmarks.workloads import Workload, named
from suite.runs import environment
from suite.training.gradients.looped import AutogradGradients
from suite.training.optimizers import InPlace
from suite.training.problem import Classification
from suite.training.translation import Translation

WORKLOADS = ("SMA ResNet-32, b=64, k=1", "cGRU, 800 words", "VGG-16/CIFAR-100, M=64", "AlexNet/227x227, M=64")
SEAMS: tuple[tuple[str, type, str], ...] = (  # part, whose method, which
    ("gradient", AutogradGradients, "tensors"),
    ("step", InPlace, "advance"),
    ("examples", Classification, "fetch"),
    ("examples", Translation, "fetch"),
)
REST, WHOLE = "rest", "update"
PARTS = ("gradient", "step", "examples", REST)


@contextmanager
def clocked(spent: dict[str, float]) -> Iterator[None]:
    """Count the seconds that pass in each part, on a CPU, into ``spent``."""

    def counted(method: Callable[..., Any], part: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            began = time.perf_counter()
            found = method(*given)
            spent[part] += time.perf_counter() - began
            return found

        return call

    with ExitStack() as patched:
        for part, owner, method in SEAMS:
            patched.enter_context(patch.object(owner, method, counted(getattr(owner, method), part)))
        yield


def timed(run: Callable[[int], object], updates: int) -> list[dict[str, float]]:
    """Seconds of each part, and of the whole ``update``, in one update after another. The first two do not count."""
    run(2)
    found = []
    for _ in range(updates):
        spent: dict[str, float] = dict.fromkeys(PARTS, 0.0)
        with clocked(spent):
            began = time.perf_counter()
            run(1)
            spent[WHOLE] = time.perf_counter() - began
        spent[REST] = spent[WHOLE] - sum(spent[part] for part in PARTS if part != REST)
        found.append(spent)
    return found


def measured(workload: Workload, updates: int, threads: int) -> list[dict[str, float]]:
    """Parts of this many updates of a workload, layer by layer, in the memory format that the suite chooses."""
    chosen = ours.execution(workload, "cpu", threads) | {"path": "looped", "width": 1}
    chosen.pop("build", None)
    return timed(ours.updates_of(workload, chosen), updates)


def table(found: Mapping[str, Sequence[Mapping[str, float]]], threads: int) -> str:
    """A row for each workload: the median update, and each part's share of the time of all its updates."""
    machine, torch = environment.machine(), environment.versions()["torch"]
    lines = [
        f"Share of an update's time by part, {threads} threads of {machine['cpu']}, torch {torch}:",
        "",
        f"| workload | updates | median of an update | {' | '.join(PARTS)} |",
        f"|---|--:|--:|{'--:|' * len(PARTS)}",
    ]
    for name, updates in found.items():
        whole = sum(one[WHOLE] for one in updates)
        shares = (f"{sum(one[part] for one in updates) / whole:.2%}" for part in PARTS)
        middle = statistics.median(one[WHOLE] for one in updates)
        lines.append(f"| {name} | {len(updates)} | {1e3 * middle:,.4g} ms | {' | '.join(shares)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parts", description=__doc__)
    parser.add_argument("workloads", nargs="*", default=WORKLOADS, help="names of workloads; the larger networks")
    parser.add_argument("--updates", type=int, default=16, help="of each workload that are timed")
    given = parser.parse_args(arguments)
    found = {name: measured(named(name), given.updates, cores()) for name in given.workloads}
    print(table(found, cores()))


if __name__ == "__main__":
    main()
