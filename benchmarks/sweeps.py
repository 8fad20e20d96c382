"""A sweep of ten seeds: two worker processes of one thread each, against the plain loop with 1 and with 2 threads.

    python -m benchmarks.sweeps [--updates N] [--repeats N] [--out FILE]

The suite's workers stay alive, each holding half of the seeds, and wait while the rival runs; the two sides take
turns. Inside a worker the seeds go through one vectorised call a step where a measurement says that it is faster,
and one after another otherwise. Ratios are the rival's wall time over ours, so above 1 where the suite is faster.
Processor time beside it is what other programs disturb least: it says what one core gains; idle machines have two.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from benchmarks.engine import Plain, machine, ours, quartiles, updates_of
from suite.choices import measure_training
from suite.execution import apply, choose
from suite.packing import Lockstep
from suite.schedules import rounds
from suite.spec import RunSpec
from suite.training import Session

SEEDS, WORKERS = 10, 2
SWEEPS = [("digits_lenet", m) for m in (1, 4, 16)] + [("caffe_lenet", m) for m in (1, 4, 16)]


def packed(model: str, batch: int, seeds: int) -> tuple[str, Callable[[], None]]:
    """How ``seeds`` sessions are executed after a measurement, and a call that makes one update of each."""
    spec = RunSpec("train", {"model": {"name": model}, "batch": batch, "algorithm": {"name": "sgd"}})
    changes = measure_training(spec, choose(spec, "cpu", 1), seeds)
    apply(choose(spec, "cpu", 1) | {"onednn": changes["onednn"]})
    layout = "channels-last" if changes["channels_last"] else "channels-first"
    sessions = {seed: ours(model, batch, channels_last=changes["channels_last"]) for seed in range(seeds)}
    if changes["width"] == 1:
        calls = [updates_of(session) for session in sessions.values()]

        def one_by_one() -> None:
            for call in calls:
                call()

        return f"looped, {layout}{'' if changes['onednn'] else ', own convolutions'}", one_by_one
    pack, turns = Lockstep(sessions, seeds), rounds(1)

    def step() -> None:
        turn = next(turns)
        assert not pack.step(dict.fromkeys(sessions, turn))

    return f"vectorised, {layout}", step


def replica_bytes(session: Session, in_a_pack: bool) -> int:
    """Vectors of parameters and buffers that a replica keeps: state, network, gradient; in a pack two more."""
    flat = session.made.problem.flat
    kept = [*session.state, session.buffers, flat.x, flat.grad, flat.buffers]
    return sum(t.nbytes for t in kept) + (2 * flat.x.nbytes + flat.buffers.nbytes if in_a_pack else 0)


def work(pipe: Connection, model: str, batch: int, seeds: int) -> None:
    """A worker: builds its sessions, says how, then makes as many updates as it is told until the pipe closes."""
    apply(choose(RunSpec("train"), "cpu", 1))
    path, step = packed(model, batch, seeds)
    pipe.send((path, replica_bytes(ours(model, batch), path.startswith("vectorised"))))
    step()
    try:
        while True:
            count, began = pipe.recv(), time.thread_time()
            for _ in range(count):
                step()
            pipe.send(time.thread_time() - began)
    except EOFError:
        return


def compare(model: str, batch: int, updates: int, repeats: int) -> dict[str, Any]:
    spawn = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for _ in range(WORKERS):
        mine, theirs = spawn.Pipe()
        process = spawn.Process(target=work, args=(theirs, model, batch, SEEDS // WORKERS))
        process.start()
        theirs.close()
        pipes.append(mine)
        processes.append(process)
    built = [pipe.recv() for pipe in pipes]
    rivals = {threads: [Plain(model, batch) for _ in range(SEEDS)] for threads in (1, 2)}
    spent: dict[str, list[float]] = {"ours": [], "plain 1": [], "plain 2": []}
    per_core: list[float] = []  # processor time of the plain loop with one thread over ours
    for repeat in range(repeats + 1):
        began = time.perf_counter()
        for pipe in pipes:
            pipe.send(updates)
        busy = sum(pipe.recv() for pipe in pipes)
        times = {"ours": time.perf_counter() - began}
        for threads, loops in rivals.items():
            torch.set_num_threads(threads)
            began, processor = time.perf_counter(), time.thread_time()
            for loop in loops:
                for _ in range(updates):
                    loop()
            times[f"plain {threads}"] = time.perf_counter() - began
            if threads == 1 and repeat:
                per_core.append((time.thread_time() - processor) / busy)
        if repeat:
            for name, seconds in times.items():
                spent[name].append(seconds)
    for pipe in pipes:
        pipe.close()
    for process in processes:
        process.join()
    median = {name: statistics.median(seconds) for name, seconds in spent.items()}
    faster = min("plain 1", "plain 2", key=lambda name: median[name])
    return {
        "ratio to the faster plain loop": round(median[faster] / median["ours"], 2),
        "faster plain loop": faster,
        "processor time, 1 thread (quartiles)": quartiles(per_core),
        "quartiles": quartiles([a / b for a, b in zip(spent[faster], spent["ours"], strict=True)]),
        "inside a worker": sorted({path for path, _ in built}),
        "bytes per replica": max(size for _, size in built),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    apply(choose(RunSpec("train"), "cpu", 1))
    before, results = machine(), {}
    for model, batch in SWEEPS:
        name = f"{SEEDS} seeds of {model} M={batch}"
        results[name] = compare(model, batch, chosen.updates, chosen.repeats)
        print(name, json.dumps(results[name]), flush=True)
        if chosen.out:  # after each, so that a benchmark cut short leaves what it has
            text = {"ratios": "rival time over ours", "machine": before, "after": machine(), "sweeps": results}
            chosen.out.write_text(json.dumps(text, indent=1) + "\n")


if __name__ == "__main__":
    main()
