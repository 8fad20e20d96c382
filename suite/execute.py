"""From specifications to stored runs, readable top to bottom: claim, resume or start, run, commit."""

from __future__ import annotations

import multiprocessing
import os
import queue
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from suite import environment, execution
from suite.experiments import Context, Experiment, OutOfTime
from suite.spec import RunSpec
from suite.store import DamagedRun, Store, encode

Resolve = Callable[[str], Experiment]


@dataclass(frozen=True)
class Surroundings:
    """What all runs of one call share; nothing here may change a number except what execution records."""

    store: Path
    device: str = "cpu"
    threads: int = 1
    data: Path | None = None
    deadline: float | None = None  # time.time()


@dataclass(frozen=True)
class Report:
    """What became of one run: stored, there already, busy elsewhere, out of time, or failed with a reason."""

    spec: RunSpec
    state: str  # "stored", "present", "busy", "late", "failed"
    status: str = ""
    why: str = ""


def execute(
    spec: RunSpec, resolve: Resolve, around: Surroundings, progress: Callable[[float], None] = lambda f: None
) -> Report:
    """Compute one run unless the store has it, from its checkpoint if it left one, and commit it once.

    A damaged folder of that name is moved aside and computed again. Raises nothing for a run that fails: the
    report says why, and the other runs go on.
    """
    store = Store(around.store, create=True)
    with store.claim(spec.id) as mine:
        if not mine:
            return Report(spec, "busy")
        why = ""
        if store.has(spec.id):
            try:
                return Report(spec, "present", store.read(spec.id).status)
            except DamagedRun as error:
                why = f"{error}; computed again"
                store.refuse(spec.id)
        folder = store.partial(spec.id)
        folder.mkdir(parents=True, exist_ok=True)
        fixed = execution.fixed(folder, spec, around.device, around.threads)
        deadline = None
        if around.deadline is not None:
            deadline = time.monotonic() + around.deadline - time.time()
            if deadline < time.monotonic():
                return Report(spec, "late")
        context = Context(folder, fixed, around.data, deadline, progress)
        try:
            outcome = resolve(spec.experiment).load()(spec, context)
        except OutOfTime:
            return Report(spec, "late")
        except (ValueError, RuntimeError, OSError, ImportError) as error:
            return Report(spec, "failed", why=f"{type(error).__name__}: {error}")
        store.commit(spec.id, encode(spec, environment.describe(dict(fixed)), outcome))
        return Report(spec, "stored", outcome.status, why)


@dataclass(frozen=True)
class Heartbeat:
    """A worker process says which run it holds and how far it is."""

    run_id: str
    fraction: float
    pid: int


def _work(
    specs: multiprocessing.Queue[RunSpec | None],
    messages: multiprocessing.Queue[Report | Heartbeat],
    resolve: Resolve,
    around: Surroundings,
) -> None:
    """A worker process: takes specifications until it meets None."""
    while (spec := specs.get()) is not None:
        beat = lambda fraction, run_id=spec.id: messages.put(Heartbeat(run_id, fraction, os.getpid()))
        beat(0.0)
        messages.put(execute(spec, resolve, around, beat))


def execute_all(
    specs: Iterable[RunSpec],
    resolve: Resolve,
    around: Surroundings,
    *,
    workers: int = 1,
    progress: Callable[[str, float], None] = lambda run_id, fraction: None,
) -> Iterator[Report]:
    """Compute all runs, largest first; with several workers, in processes of ``around.threads`` threads each.

    ``resolve`` must be importable by name. A worker that dies (killed, out of memory) has its run reported as
    failed and is replaced; the run keeps its checkpoint.
    """
    todo = sorted(set(specs), key=lambda s: (-resolve(s.experiment).seconds(s), s.id))
    if workers <= 1 or len(todo) <= 1:
        for spec in todo:
            yield execute(spec, resolve, around, partial(progress, spec.id))
        return
    spawn = multiprocessing.get_context("spawn")
    inbox: multiprocessing.Queue[RunSpec | None] = spawn.Queue()
    messages: multiprocessing.Queue[Report | Heartbeat] = spawn.Queue()
    crew: dict[int, Any] = {}

    def hire() -> None:
        process = spawn.Process(target=_work, args=(inbox, messages, resolve, around), daemon=True)
        process.start()
        crew[process.pid] = process
        inbox.put(None)

    waiting = {spec.id: spec for spec in todo}
    held: dict[int, str] = {}
    for spec in todo:
        inbox.put(spec)
    for _ in range(min(workers, len(todo))):
        hire()
    try:
        while waiting:
            try:
                message = messages.get(timeout=0.5)
            except queue.Empty:
                for pid in [pid for pid, process in crew.items() if process.exitcode is not None]:
                    crew.pop(pid)
                    lost = waiting.pop(held.get(pid, ""), None)
                    if lost:
                        yield Report(lost, "failed", why="its worker process died; run again to resume it")
                if waiting and not crew:
                    hire()
                continue
            if isinstance(message, Report):
                waiting.pop(message.spec.id, None)
                yield message
            else:
                held[message.pid] = message.run_id
                progress(message.run_id, message.fraction)
    finally:
        for process in crew.values():
            process.join(timeout=2)
            process.terminate()
