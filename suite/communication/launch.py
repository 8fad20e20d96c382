"""Worker processes on this machine for tests, benchmarks and experiments; ``torchrun`` starts real training.

Workers are forked from a process that has imported torch, with what its optimisers import later, and done nothing
else: milliseconds where an interpreter of their own takes seconds. Each may move to a host of a
:mod:`lab <suite.communication.link>` before it begins. A worker reads what to do from a pipe, leaves its answer in a
file, and ends when the pipe is closed: workers do not outlive the process that started them.
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
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from suite.communication import link
from suite.communication.group import START_UP, TIMEOUT, join
from suite.interruption import blocked

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload([__name__, "torch._dynamo"])


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
    threads: int = 1,
    lab: link.Lab | None = None,
) -> list[Any]:
    """Run ``body(group, *arguments)`` in ``workers`` gloo processes; what each returned, by rank.

    ``body`` must be importable by name, arguments and results picklable. The workers meet in a file of a folder
    that only this user can open: a store that listens on a port would take keys from anybody who reaches it. With a
    ``lab`` each is on the host of its rank, and sums go over the links between them. When a worker fails, the others
    have four timeouts to stop by themselves before they are killed.
    Raises WorkersFailed with what each failed worker said; one that was killed says so by its exit status.
    """
    if body.__module__ == "__main__":
        raise ValueError(f"spawn: {body.__name__} must live in a module that workers can import, not in a script")
    call = (body.__module__, body.__qualname__, arguments)
    with tempfile.TemporaryDirectory() as folder:
        answers = [Path(folder, str(rank)) for rank in range(workers)]
        crew: list[_Forked] = []
        try:
            for rank in range(workers):
                network = lab.networks[rank] if lab else ""
                order = (call, rank, workers, str(Path(folder, "meeting")), timeout, threads, str(answers[rank]))
                with blocked([signal.SIGINT]):  # Ctrl-C is this process's, which ends its workers
                    started = _Forked(network)
                crew.append(started)
                started.tell(order)
            _wait(crew, 4 * timeout)
            late = [rank for rank, worker in enumerate(crew) if worker.status is None]
        finally:
            for worker in crew:
                worker.end()
        return _collect(answers, [worker.status or 0 for worker in crew], late)


class _Forked:
    """A worker forked from the process that has imported torch."""

    def __init__(self, network: str):
        read, self._write = FORKED.Pipe(duplex=False)
        self._process = FORKED.Process(target=_forked, args=(read, dict(os.environ), network), daemon=True)
        self._process.start()
        read.close()

    def tell(self, order: Any) -> None:
        self._write.send_bytes(pickle.dumps(order))

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal, or None while it runs."""
        return self._process.exitcode

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._write.close()


def _wait(crew: Sequence[_Forked], patience: float) -> None:
    """Until all have ended, or ``patience`` seconds after the first that ended badly."""
    deadline = float("inf")
    while any(worker.status is None for worker in crew) and time.monotonic() < deadline:
        if deadline == float("inf") and any(worker.status for worker in crew):
            deadline = time.monotonic() + patience
        time.sleep(0.02)


def _collect(answers: Sequence[Path], statuses: Sequence[int], late: Sequence[int]) -> list[Any]:
    """The values of all workers; raises WorkersFailed if one has none."""
    values, errors = [], {}
    for rank, (path, status) in enumerate(zip(answers, statuses, strict=True)):
        kind, content = pickle.loads(path.read_bytes()) if path.exists() else ("error", None)
        if kind == "value":
            values.append(content)
        elif content:
            errors[rank] = content
        elif rank in late:
            errors[rank] = ("Killed", "it had not stopped by itself")
        else:
            errors[rank] = ("Died", f"exit status {status}")
    if errors:
        raise WorkersFailed(errors)
    return values


def _end_with_parent(pipe: int) -> None:
    """Nothing is ever written after the order: a read returns when the parent is gone."""
    os.read(pipe, 1)
    os._exit(1)


def _forked(orders: Any, environment: Mapping[str, str], network: str) -> None:
    """A forked worker, from its pipe, its environment and its network namespace ("": the parent's) on."""
    os.environ.clear()
    os.environ |= environment
    if network:
        link.enter(network)
        os.environ["GLOO_SOCKET_IFNAME"] = link.INTERFACE
    sys.exit(_work(pickle.loads(orders.recv_bytes()), orders.fileno()))


def _work(order: Any, pipe: int) -> int:
    """A worker process: join, run the body of the order, leave the answer. ``pipe`` ends with the parent."""
    call, rank, workers, meeting, timeout, threads, answer = order
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(workers), "LOCAL_RANK": str(rank)}
    torch.set_num_threads(threads)
    module, name, arguments = call
    try:
        body = getattr(import_module(module), name)
        store = dist.FileStore(meeting, workers)
        store.set_timeout(timedelta(seconds=max(timeout, START_UP)))
        with join(timeout=timeout, backend="gloo", store=store) as group:
            said = ("value", body(group, *arguments))
            group.agree({"finished": True})  # whoever fails now must find the others here
    except Exception as error:
        traceback.print_exc()
        said = ("error", (type(error).__name__, str(error)))
    staging = Path(answer + ".part")
    staging.write_bytes(pickle.dumps(said))
    staging.replace(answer)
    return int(said[0] == "error")
