"""One benchmark document from one small workload, in seconds: what ``ci.prove`` measures again and again.

    python -m ci.small_benchmark --json FILE [--rounds 15] [--extra 0.2]

Both sides train LeNet on the embedded digits, alternating in one process: ours is a session of the suite, the rival
the plain eager loop. ``--extra`` plants a slowdown that is really there: our side makes that share of updates more
than it says. (``nox -s benchmark`` measures the workloads that matter; this one is only quick.)
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from suite.experiment import Context
from suite.models import build, initialise
from suite.runs import environment
from suite.runs.telemetry import watch
from suite.spec import RunSpec
from suite.training.build import assemble
from suite.training.gradients.paths import PATHS
from suite.training.loop import Session
from suite.training.numerics import apply, choose
from suite.training.schedules import rounds

BATCH, RATE, MOMENTUM = 16, 0.01, 0.9
MODEL = {"name": "digits_lenet", "input_size": 8, "kernel": 3}
SETTINGS = {
    "data": {"name": "digits", "size": 8},
    "model": MODEL,
    "algorithm": {"name": "sgd"},
    "descent": {"rule": "torch", "momentum": MOMENTUM, "decay": 0.0},
    "rate": RATE,
    "batch": BATCH,
    "updates": 10**9,
    "evaluate": {"every": 10**9},
    "record": {"every": 10**6},
}
UPDATES = 40  # per side and round
Advance = Callable[[int], None]


def ours(folder: Path) -> tuple[Session, Advance]:
    """A session of the suite, and how to advance it by a number of updates."""
    spec = RunSpec("train", SETTINGS, 1)
    execution = choose(spec, "cpu", 1)
    apply(execution)
    made = assemble(spec.settings, spec.seed, execution, None)
    session = Session(spec, Context(folder, execution), made, PATHS["looped"](made.problem))
    turns = rounds(1)

    def advance(updates: int) -> None:
        for _ in range(updates):
            session.update(next(turns))

    return session, advance


def plain(session: Session) -> Advance:
    """The loop a user would write, on the same pictures."""
    problem = session.made.problem
    inputs, targets = problem.transform(problem.inputs), problem.targets
    module = build(**MODEL)
    initialise(module, 1)
    solver = torch.optim.SGD(module.parameters(), lr=RATE, momentum=MOMENTUM)
    at = 0

    def advance(updates: int) -> None:
        nonlocal at
        for _ in range(updates):
            rows = (torch.arange(BATCH) + at * BATCH) % len(targets)
            solver.zero_grad()
            F.cross_entropy(module(inputs[rows]), targets[rows]).backward()
            solver.step()
            at += 1

    return advance


def measure(count: int, extra: float) -> dict[str, Any]:
    """A benchmark document of ``count`` rounds; our side makes ``extra`` updates more than are counted."""
    started = {"load_average": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder, watch() as telemetry:
        session, advance = ours(Path(folder))
        sides = {"ours": (advance, round(UPDATES * (1 + extra))), "plain": (plain(session), UPDATES)}
        wall: dict[str, list[float]] = {side: [] for side in sides}
        processor: dict[str, list[float]] = {side: [] for side in sides}
        for turn in range(-2, count):
            for side, (function, updates) in sides.items():
                began, spent = time.perf_counter(), time.process_time()
                function(updates)
                if turn >= 0:
                    processor[side].append((time.process_time() - spent) / UPDATES)
                    wall[side].append((time.perf_counter() - began) / UPDATES)
    workload = {
        "family": "guard",
        "unit": "seconds per update",
        "examples": BATCH,
        "sides": {side: {"seconds": wall[side], "processor": processor[side], "threads": 1} for side in sides},
        "ratio": {"rival": "plain"},
        "telemetry": telemetry,
    }
    return {
        "format": 1,
        "machine": {**environment.machine(), "class": environment.machine_class()},
        "versions": environment.versions(),
        "started": started,
        "ended": {"load_average": os.getloadavg()[0]},
        "workloads": {f"LeNet on digits, M={BATCH}": workload},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--extra", type=float, default=0.0)
    chosen = parser.parse_args()
    chosen.json.write_text(json.dumps(measure(chosen.rounds, chosen.extra), indent=1) + "\n")


if __name__ == "__main__":
    main()
