"""What each part of an update is worth: ours beside itself with one thing switched off, taking turns in one process.

``python -m benchmarks.ablation [--rounds N] [--out FILE]`` writes a table for one thread. A ratio is the time without
the thing over the time with it, in the same round: above 1 the thing is worth having. Its interval holds the median
ratio in 95 of 100 such measurements, by order statistics. Seconds are those of the thread, so that other processes
count less. That freed memory is kept cannot be undone within a process, and tests are no part of an update: neither
is here.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import quantile_test

from benchmarks.alternating import Alternation, Side, Timer
from benchmarks.ours import Update, execution, repeated, session
from benchmarks.plain import RATE
from benchmarks.workloads import Workload, named
from suite.report.speed import RESULTS
from suite.runs import environment
from suite.training.gradients.native import Native
from suite.training.loop import TrainingRun
from suite.training.numerics import apply
from suite.training.schedules import rounds

WORKLOADS = (
    *(named(name) for name in ("LeNet/MNIST, M=1", "LeNet/MNIST, M=16", "SMA LeNet, b=16, k=4")),
    *(named(f"{name}/CIFAR-10, M={batch}") for name in ("quick", "full") for batch in (4, 128)),
    *(Workload(f"VGG medium/CIFAR-10, M={batch}", "training", "vgg_medium", batch) for batch in (16, 64)),
)
AUTOGRAD: dict[str, Any] = {"path": "looped", "channels_last": True, "onednn": True, "width": 1}
EXECUTIONS: dict[str, dict[str, Any]] = {  # of the loop, with one thing off
    "maps channels-last": {"channels_last": False},
    "oneDNN's convolutions, and maps channels-last": {"channels_last": False, "onednn": False},
}
SAMPLE = 0.1  # seconds that a sample of the fastest side fills at least
CONFIDENCE = 0.95


def whole(made: TrainingRun) -> Update:
    """An update as a run makes it."""
    turns = rounds(made.workers)
    return lambda: made.update(next(turns))


def without_joint_step(made: TrainingRun) -> Update | None:
    """Gradients written to a row first, which the solver reads."""
    if made.step is None:
        return None
    made.step = None
    return whole(made)


def without_in_place(made: TrainingRun) -> Update | None:
    """The solver as it is written, with new vectors for everything."""
    made.step, made.algorithm = None, made.made.algorithm
    return whole(made)


def without_decoding(made: TrainingRun) -> Update | None:
    """Pictures that lie there as floats, as the plain loop has them."""
    problem = made.problem
    problem.inputs, problem.transform = problem.transform(problem.inputs), lambda pixels: pixels
    return whole(made)


def without_bookkeeping(made: TrainingRun) -> Update | None:
    """Gradient and step on one batch again and again: no order, no gathering, no schedule, no curves."""
    step: Any = made.step
    if step is None:
        return None
    _, examples = made.request(next(rounds(made.workers)))
    batch = made.problem.fetch(examples[0])
    return lambda: step.advance(made.state.x, made.state.memory, made.buffers, batch, RATE)


SWITCHES: dict[str, Callable[[TrainingRun], Update | None]] = {
    "gradient and step in one": without_joint_step,
    "a step in place": without_in_place,
    "decoding of the pictures": without_decoding,
    "all that is not gradient and step": without_bookkeeping,
}


def sides_of(workload: Workload, chosen: Mapping[str, Any]) -> dict[tuple[str, str], Update]:
    """Updates by (how it is executed, what is off): "" for nothing. Ours as chosen, and the loop by autograd."""
    loop = {**chosen, **AUTOGRAD}
    loop.pop("build", None)
    native = chosen["path"] == "native"
    found: dict[tuple[str, str], Update] = {}
    for name, way in {"machine code": chosen, "autograd": loop}.items() if native else [("autograd", loop)]:
        found[name, ""] = whole(session(workload, way))
        for what, switch in SWITCHES.items():
            if (update := switch(session(workload, way))) is not None:
                found[name, what] = update
    for what, changes in EXECUTIONS.items():
        found["autograd", what] = whole(session(workload, {**loop, **changes}))
    if native:
        found["machine code", "machine code"] = found["autograd", ""]
        if (direct := by_direct_sums(workload, chosen)) is not None:
            found["machine code", "convolutions of fewer multiplications"] = direct
    return found


def by_direct_sums(workload: Workload, chosen: Mapping[str, Any]) -> Update | None:
    """An update by the machine code with direct sums alone; None where that is the chosen one."""
    problem = session(workload, chosen).made.problem
    if not Native(problem, chosen["build"]).library.winograd:
        return None
    build = Native(problem, direct=True).library.build
    return whole(session(workload, {**chosen, "build": build}))


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, and the ends of its interval; these are not numbers where there are too few values."""
    ends = quantile_test(values).confidence_interval(CONFIDENCE)
    return statistics.median(values), float(ends.low), float(ends.high)


def measured(workload: Workload, count: int) -> dict[tuple[str, str], list[float]]:
    """Processor seconds per update of each side, round by round."""
    chosen = execution(workload, "cpu", 1)
    apply(chosen)
    updates = sides_of(workload, chosen)
    keys = {" without ".join(key): key for key in updates}
    turns = Alternation({name: Side(repeated(updates[key])) for name, key in keys.items()}, Timer())
    turns.warm(1, SAMPLE, lambda taken: ())
    for _ in range(count):
        turns.round()
    return {key: [float(seconds or 0) for seconds in turns.processor[name]] for name, key in keys.items()}


def rows(workload: str, seconds: Mapping[tuple[str, str], Sequence[float]]) -> list[str]:
    """Lines of the table: each side against its own way with nothing off."""
    found = []
    for (way, off), taken in seconds.items():
        base = seconds[way, ""]
        if off:
            ratios = [a / b for a, b in zip(taken, base, strict=True)]
            middle, low, high = interval(ratios)
            found.append(f"| {workload} | {way} | {off} | {middle:.3f} | {low:.3f} to {high:.3f} |")
        else:
            found.append(f"| {workload} | {way} | nothing: {1e3 * statistics.median(taken):.3g} ms | 1 | |")
    return found


def table(seconds: Mapping[str, Mapping[tuple[str, str], Sequence[float]]], count: int) -> str:
    """The whole file: machine, and a row for each thing."""
    machine, torch = environment.machine(), environment.versions()["torch"]
    lines = [
        f"Time of an update without a thing over the time with it, {count} rounds of all sides in turns,",
        f"one thread of {machine['cpu']}, torch {torch}. `python -m benchmarks.ablation` writes it.",
        "",
        "| workload | gradients by | without | ratio | 95% interval |",
        "|---|---|---|--:|--:|",
    ]
    return "\n".join([*lines, *(row for name, found in seconds.items() for row in rows(name, found)), ""])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="samples of each side; 6 or more for an interval")
    out = RESULTS / f"ablation-{environment.machine_class('cpu')}.md"
    parser.add_argument("--out", type=Path, default=out)
    given = parser.parse_args(arguments)
    seconds = {workload.name: measured(workload, given.rounds) for workload in WORKLOADS}
    given.out.write_text(table(seconds, given.rounds), encoding="utf-8")


if __name__ == "__main__":
    main()
