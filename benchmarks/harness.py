"""Training through the harness against the loop a user would write, alternating in one process.

    python benchmarks/harness.py --data DIR [--rounds 9] [--json FILE]

Ours is the whole of a training run's update: schedule, batch order, gather, gradient, algorithm, recording, and
a checkpoint per slice. The rival is plain eager PyTorch: resident float tensors, ``torch.optim.SGD``, one index
per batch; it runs with one and with two threads, and in both memory formats. Ratios are rival time over ours, so
above 1 we are faster; medians over rounds with their quartiles.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from paper_figures.isgd import settings
from suite.assembly import assemble
from suite.environment import machine, versions
from suite.experiments import Context
from suite.gradients import PATHS
from suite.models import build, initialise
from suite.schedules import rounds
from suite.spec import RunSpec
from suite.training import Session

EXECUTION = {"path": "looped", "threads": 1, "precision": "float32", "device": "cpu", "channels_last": True}
WORKLOADS = {"LeNet/MNIST, batch 64": (settings.MNIST, 24), "quick/CIFAR-10, batch 100": (settings.CIFAR, 8)}


def ours(spec: RunSpec, data: Path, folder: Path) -> tuple[Session, Callable[[int], None], Callable[[int], None]]:
    """A session with two ways to advance it: with everything, and with the gradient alone (no harness)."""
    made = assemble(spec.settings, spec.seed, EXECUTION, data)
    session = Session(spec, Context(folder, EXECUTION, data), made, PATHS["looped"](made.problem))

    def advance(updates: int) -> None:
        for turn in islice(rounds(1, start=session.t), updates):
            session.update(turn)
        session.recorder.settle()

    def bare(updates: int) -> None:
        state = session.state
        members = torch.zeros(1, dtype=torch.int64)
        for t in range(updates):
            examples = made.order.indices(torch.tensor([t]), members)
            _, sums, _ = session.gradients(state.x[None], session.buffers, [made.problem.fetch(examples[0])])
            state = type(state)(*made.descent.step(state.memory, state.x, sums[0], session.rate(t)))

    return session, advance, bare


def rival(spec: RunSpec, session: Session, channels_last: bool) -> Callable[[int], None]:
    """The plain loop on the same data, already decoded to floats and resident."""
    problem, values = session.made.problem, spec.settings
    inputs = torch.cat([problem.transform(part) for part in problem.inputs[:20_000].split(2000)])
    targets = problem.targets[:20_000]
    module = build(values["model"]["name"])
    initialise(module, 0)
    if channels_last:
        inputs = inputs.contiguous(memory_format=torch.channels_last)
        module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    descent = values["descent"]
    optimiser = torch.optim.SGD(
        module.parameters(), lr=values["rate"], momentum=descent["momentum"], weight_decay=descent["decay"]
    )
    permutation = torch.randperm(len(targets), generator=torch.Generator().manual_seed(0))
    batch = values["batch"]

    def advance(updates: int) -> None:
        for t in range(updates):
            chosen = permutation[t * batch : (t + 1) * batch]
            optimiser.zero_grad()
            F.cross_entropy(module(inputs[chosen]), targets[chosen]).backward()
            optimiser.step()

    return advance


def timed(function: Callable[[int], None], updates: int, threads: int) -> float:
    torch.set_num_threads(threads)
    start = time.perf_counter()
    function(updates)
    return (time.perf_counter() - start) / updates


def quartiles(values: list[float]) -> list[float]:
    return [round(v, 3) for v in statistics.quantiles(values, n=4)]


def compare(name: str, data: Path, repeats: int) -> dict[str, Any]:
    """All sides of one workload, interleaved round by round."""
    base, updates = WORKLOADS[name]
    spec = settings.train(base, 0, algorithm={"name": "sgd"}, updates=10**6, every=10**6)
    with tempfile.TemporaryDirectory() as folder:
        session, advance, bare = ours(spec, data, Path(folder))
        sides: dict[str, tuple[Callable[[int], None], int]] = {
            "ours": (advance, 1),
            "ours, 2 threads": (advance, 2),
            "gradient and step alone": (bare, 1),
            "plain, 1 thread": (rival(spec, session, False), 1),
            "plain, 2 threads": (rival(spec, session, False), 2),
            "plain channels-last, 1 thread": (rival(spec, session, True), 1),
            "plain channels-last, 2 threads": (rival(spec, session, True), 2),
        }
        seconds: dict[str, list[float]] = {side: [] for side in sides}
        for turn in range(-1, repeats):
            for side, (function, threads) in sides.items():
                spent = timed(function, updates, threads)
                if turn >= 0:
                    seconds[side].append(spent)
    ratios = {
        side: quartiles([theirs / mine for theirs, mine in zip(values, seconds["ours"], strict=True)])
        for side, values in seconds.items()
        if side.startswith("plain")
    }
    two = {
        side: quartiles([theirs / mine for theirs, mine in zip(values, seconds["ours, 2 threads"], strict=True)])
        for side, values in seconds.items()
        if side.startswith("plain")
    }
    overhead = [o / b - 1 for o, b in zip(seconds["ours"], seconds["gradient and step alone"], strict=True)]
    return {
        "workload": name,
        "rounds": repeats,
        "ratio_to_ours_1_thread": ratios,
        "ratio_to_ours_2_threads": two,
        "harness_share": quartiles(overhead),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    results = [compare(name, chosen.data, chosen.rounds) for name in WORKLOADS]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    document = {"machine": machine(), "versions": versions(), "results": results, "peak_memory_bytes": peak}
    print(json.dumps(document, indent=1))
    if chosen.json:
        chosen.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
