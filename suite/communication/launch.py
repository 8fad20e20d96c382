"""Worker processes on this machine for tests, benchmarks and experiments; ``torchrun`` starts real training.

Workers are forked from a process that has imported torch, with what its optimisers import later, and done nothing
else: milliseconds where an interpreter of their own takes seconds. Each may move to a host of a
:mod:`lab <suite.communication.link>` before it begins. A worker leaves its answer in a file; none outlives the
process that started it.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from suite.communication import link
from suite.communication.group import START_UP, TIMEOUT, WorkerLost, join
from suite.files import write_whole
from suite.interruption import blocked

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload([__name__, "torch._dynamo"])
# Where many processes come and go, gloo's first connection is now and then closed, and one side waits for ever.
# Workers that have not met are started again, so many times in all.
MEETINGS = 3
APART = 75  # exit status of a worker that did not meet the others


class WorkersFailed(RuntimeError):
    """One or several workers of :func:`spawn` failed; ``errors`` holds (type name, message) by rank."""

    def __init__(self, errors: Mapping[int, tuple[str, str]]):
        self.errors = dict(errors)
        super().__init__("; ".join(f"worker {rank}: {kind}: {text}" for rank, (kind, text) in self.errors.items()))


def spawn(
    body: Callable[..., Any],
    workers: int,
    *arguments: Any,
    timeout: float = TIMEOUT,
    lab: Sequence[str] = (),
) -> list[Any]:
    """Run ``body(group, *arguments)`` in ``workers`` gloo processes; what each returned, by rank.

    ``body`` must be importable by name, arguments and results picklable. The workers meet in a file of a folder
    that only this user can open: a store that listens on a port would take keys from anybody who reaches it. With a
    ``lab`` each is on the host of its rank, and sums go over the links between them. When a worker fails, the others
    have four timeouts to stop by themselves before they are killed. Workers that did not meet are started anew.
    Raises WorkersFailed with what each failed worker said; one that was killed says so by its exit status.
    """
    if body.__module__ == "__main__":
        raise ValueError(f"spawn: {body.__name__} must live in a module that workers can import, not in a script")
    call = (body.__module__, body.__qualname__, arguments)
    with tempfile.TemporaryDirectory() as folder:
        for meeting in range(MEETINGS):
            place = Path(folder, str(meeting))
            place.mkdir()
            answers = [place / str(rank) for rank in range(workers)]
            about = (workers, str(place / "meeting"), timeout)
            orders = [(call, rank, *about, str(answer)) for rank, answer in enumerate(answers)]
            statuses = _attempt(orders, lab, 4 * timeout)
            if APART not in statuses:
                break
        return _collect(answers, statuses)


def _attempt(orders: Sequence[Any], lab: Sequence[str], patience: float) -> list[int | None]:
    """The exit statuses of workers that are given these orders, None for one that had to be killed."""
    crew: list[ForkServerProcess] = []
    try:
        for rank, order in enumerate(orders):
            given = pickle.dumps(order), dict(os.environ), lab[rank] if lab else ""
            with blocked([signal.SIGINT]):  # Ctrl-C is this process's, which ends its workers
                worker = FORKED.Process(target=_forked, args=given, daemon=True)
                worker.start()
            crew.append(worker)
        _wait(crew, patience)
        return [worker.exitcode for worker in crew]
    finally:
        for worker in crew:
            worker.kill()
            worker.join()


def _wait(crew: Sequence[ForkServerProcess], patience: float) -> None:
    """Until all have ended, or ``patience`` seconds after the first that ended badly, or one found no other."""
    deadline = float("inf")
    while any(worker.exitcode is None for worker in crew) and time.monotonic() < deadline:
        if any(worker.exitcode == APART for worker in crew):
            return
        if deadline == float("inf") and any(worker.exitcode for worker in crew):
            deadline = time.monotonic() + patience
        time.sleep(0.02)


def _collect(answers: Sequence[Path], statuses: Sequence[int | None]) -> list[Any]:
    """The values of all workers; raises WorkersFailed if one has none."""
    values, errors = [], {}
    for rank, (path, status) in enumerate(zip(answers, statuses, strict=True)):
        kind, content = pickle.loads(path.read_bytes()) if path.exists() else ("error", None)
        if kind == "value":
            values.append(content)
        elif content:
            errors[rank] = content
        elif status is None:
            errors[rank] = ("Killed", "it had not stopped by itself")
        else:
            errors[rank] = ("Died", f"exit status {status}")
    if errors:
        raise WorkersFailed(errors)
    return values


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _forked(order: bytes, environment: Mapping[str, str], network: str) -> None:
    """A forked worker, from its order, its environment and its network namespace ("": the parent's) on."""
    os.environ.clear()
    os.environ |= environment
    if network:
        link.enter(network)
        os.environ["GLOO_SOCKET_IFNAME"] = link.INTERFACE
    sys.exit(_work(pickle.loads(order)))


def _work(order: Any) -> int:
    """A worker process: join, run the body of the order, leave the answer. It ends with the parent."""
    call, rank, workers, meeting, timeout, answer = order
    met = False
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(workers), "LOCAL_RANK": str(rank)}
    torch.set_num_threads(1)
    module, name, arguments = call
    try:
        body = getattr(import_module(module), name)
        store = dist.FileStore(meeting, workers)
        store.set_timeout(timedelta(seconds=max(timeout, START_UP)))
        with join(timeout=timeout, backend="gloo", store=store) as group:
            store.set(f"met/{rank}", "")
            store.wait([f"met/{other}" for other in range(workers)])  # no body begins unless all do
            met = True
            said = ("value", body(group, *arguments))
            group.agree({"finished": True})  # whoever fails now must find the others here
    except Exception as error:
        traceback.print_exc()
        said = ("error", (type(error).__name__, str(error)))
    write_whole(Path(answer), pickle.dumps(said))
    if said[0] == "value":
        return 0
    return 1 if met or said[1][0] != WorkerLost.__name__ else APART
