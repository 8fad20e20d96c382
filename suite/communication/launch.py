"""Worker processes on this machine for tests, benchmarks and experiments; ``torchrun`` starts real training.

Each is an interpreter of its own running ``python -m suite.communication.launch``, optionally behind a command prefix
(a network namespace), so it can also be started from a process that may not have children of its own kind. It reads
what to do from its standard input, leaves its answer in a file, and ends when that input is closed: workers do not
outlive the process that started them.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
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

from suite.communication.group import START_UP, TIMEOUT, join
from suite.interruption import blocked

Prefix = Callable[[int], Sequence[str]]  # by rank: what stands before the interpreter on the command line


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
    prefix: Prefix = lambda rank: (),
    environment: Callable[[int], Mapping[str, str]] = lambda rank: {},
) -> list[Any]:
    """Run ``body(group, *arguments)`` in ``workers`` gloo processes; what each returned, by rank.

    ``body`` must be importable by name, arguments and results picklable. The workers meet in a file of a folder
    that only this user can open: a store that listens on a port would take keys from anybody who reaches it. When a
    worker fails, the others have four timeouts to stop by themselves before they are killed.
    Raises WorkersFailed with what each failed worker said; one that was killed says so by its exit status.
    """
    if body.__module__ == "__main__":
        raise ValueError(f"spawn: {body.__name__} must live in a module that workers can import, not in a script")
    call = (body.__module__, body.__qualname__, arguments)
    with tempfile.TemporaryDirectory() as folder:
        answers = [Path(folder, str(rank)) for rank in range(workers)]
        crew = []
        for rank in range(workers):
            with blocked([signal.SIGINT]):  # Ctrl-C is this process's, which ends its workers
                process = subprocess.Popen(
                    [*prefix(rank), sys.executable, "-m", "suite.communication.launch"],
                    stdin=subprocess.PIPE,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment(rank)},
                )
            order = (call, rank, workers, str(Path(folder, "meeting")), timeout, threads, str(answers[rank]))
            assert process.stdin is not None
            pickle.dump(order, process.stdin)
            process.stdin.flush()
            crew.append(process)
        try:
            _wait(crew, 4 * timeout)
            late = [rank for rank, process in enumerate(crew) if process.poll() is None]
        finally:
            for process in crew:
                process.kill()
                process.wait()
                assert process.stdin is not None
                process.stdin.close()
        return _collect(answers, [process.returncode for process in crew], late)


def _wait(crew: Sequence[subprocess.Popen[bytes]], patience: float) -> None:
    """Until all have ended, or ``patience`` seconds after the first that ended badly."""
    deadline = float("inf")
    while any(process.poll() is None for process in crew) and time.monotonic() < deadline:
        if deadline == float("inf") and any(process.poll() for process in crew):
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


def _end_with_parent() -> None:
    """Nothing is ever written after the order: a read returns when the parent is gone."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


def _work() -> int:
    """A worker process: take the order, join, run the body, leave the answer."""
    call, rank, workers, meeting, timeout, threads, answer = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
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


if __name__ == "__main__":
    sys.exit(_work())
