"""Workers that stay alive and wait while other sides run: a sweep dealt over processes, and JAX, whose threads are
those of its process."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.workloads import Workload


def work(pipe: Connection, kind: str, workload: Workload, threads: int) -> None:
    """A worker: builds its share, says how it is executed, then makes as many updates as it is told."""
    run, chosen = build(kind, workload, threads)
    pipe.send(chosen)
    try:
        while True:
            updates, began = pipe.recv(), time.process_time()
            run(updates)
            pipe.send(time.process_time() - began)
    except (EOFError, KeyboardInterrupt):
        return


def build(kind: str, workload: Workload, threads: int) -> tuple[Callable[[int], None], dict[str, Any]]:
    """What makes a workload's updates in this process, and how it is executed if it is ours."""
    if kind.startswith("jax "):
        os.environ |= {"NPROC": str(threads), "PJRT_NPROC": str(threads)}  # XLA starts as many threads
        from benchmarks import jax_sides

        form = kind.removeprefix("jax ")
        loop = jax_sides.Loop(workload, form.removesuffix(" vmap"), together=form.endswith(" vmap"))
        loop.run(1)  # compiles
        return loop.run, {}
    from benchmarks import ours, plain
    from suite.training.numerics import apply, choose

    apply(choose(ours.specification(workload), "cpu", threads))
    if kind == "ours":
        return ours.in_process(workload, "cpu", threads)
    return plain.loop(workload, "cpu", plain.FORMS[kind]).run, {}


class Workers:
    """``count`` processes of so many threads with equal shares of a workload's runs.

    ``kind`` is ``ours``, a form of the plain loop, or ``jax`` with one of its forms and perhaps ``vmap``.
    """

    def __init__(self, workload: Workload, kind: str, count: int, threads: int = 1):
        spawn = multiprocessing.get_context("spawn")  # a forked child would inherit torch's thread pools
        self.pipes: list[Connection] = []
        self.processes = []
        for rank in range(count):
            share = len(range(rank, workload.runs, count))
            mine, theirs = spawn.Pipe()
            process = spawn.Process(
                target=work, args=(theirs, kind, replace(workload, runs=share), threads), daemon=True
            )
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
