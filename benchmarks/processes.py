"""A sweep dealt over worker processes of one thread each, which stay alive and wait while other sides run."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.workloads import Workload


def work(pipe: Connection, kind: str, workload: Workload) -> None:
    """A worker: builds its share, says how it is executed, then makes as many updates as it is told."""
    from benchmarks import ours, plain
    from suite.training.numerics import apply, choose

    apply(choose(ours.specification(workload), "cpu", 1))
    run: Callable[[int], None]
    chosen: dict[str, Any] = {}
    if kind == "ours":
        run, chosen = ours.in_process(workload, "cpu", 1)
    else:
        run = plain.loop(workload, "cpu", plain.FORMS[kind]).run
    pipe.send(chosen)
    try:
        while True:
            updates, began = pipe.recv(), time.thread_time()
            run(updates)
            pipe.send(time.thread_time() - began)
    except (EOFError, KeyboardInterrupt):
        return


class Workers:
    """``count`` processes with equal shares of a sweep's runs. ``kind`` is ``ours`` or a form of the plain loop."""

    def __init__(self, workload: Workload, kind: str, count: int):
        spawn = multiprocessing.get_context("spawn")  # a forked child would inherit torch's thread pools
        self.pipes: list[Connection] = []
        self.processes = []
        for rank in range(count):
            share = len(range(rank, workload.runs, count))
            mine, theirs = spawn.Pipe()
            process = spawn.Process(target=work, args=(theirs, kind, replace(workload, runs=share)), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)
        built = [pipe.recv() for pipe in self.pipes]  # all of them are ready after this
        self.execution: dict[str, Any] = built[0]

    def run(self, updates: int) -> float:
        """All workers make so many updates of their runs; returns their processor seconds together."""
        for pipe in self.pipes:
            pipe.send(updates)
        return sum(pipe.recv() for pipe in self.pipes)

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join()
