"""A pool of worker processes: each computes one run at a time, handed to it through a pipe of its own.

Nothing is shared between workers, so one that is killed at any instant cannot hold a lock that the others need,
and the parent always knows which run it had.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from suite import interruption
from suite.spec import RunSpec

NOT_BEGUN = "not begun"  # status of a run that is late before anything of it was computed
LOOK = 1.0  # seconds between two looks at whether a silent worker still lives
NO_MEMORY = "OutOfMemoryError"  # how torch calls it that a device has none left
GRACE = 5.0  # seconds more than a run may take to leave its checkpoint, after which a worker is killed


@dataclass(frozen=True)
class RunReport:
    """What became of one run: stored, there already, busy elsewhere, out of time, or failed with a reason."""

    spec: RunSpec
    state: str  # "stored", "present", "busy", "late", "failed"
    status: str = ""
    why: str = ""


# What a worker does with a run and its ``progress``: importable by name, and pickled once when the worker starts.
Compute = Callable[..., RunReport]


def work(orders: Connection, compute: Compute) -> None:
    """A worker process: runs come in, fractions (float) and each run's report go out, or an error that is no run's.

    It leaves when the parent closes the pipe or is gone, and on a signal, with a checkpoint.
    """
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError, interruption.Interrupted):  # noqa: SIM117
        with interruption.watched():
            while True:
                spec = orders.recv()
                try:
                    orders.send(compute(spec, progress=partial(tell, orders)))
                except ValueError as error:  # a sentence for the user, as of a store that cannot be written
                    orders.send(ValueError(str(error)))
                interruption.leave_if_asked()


def starved(report: RunReport) -> bool:
    """Whether a run failed because its device had no memory left."""
    return report.state == "failed" and report.why.startswith(NO_MEMORY)


def tell(orders: Connection, fraction: float) -> None:
    """Say how far the run is. Where nobody listens any more it is asked to stop, and not failed by a broken pipe.

    On Ctrl-C the parent may have closed the pipe before this process looks whether it got the signal too.
    """
    try:
        orders.send(float(fraction))
    except (BrokenPipeError, ConnectionResetError):
        signal.raise_signal(signal.SIGTERM)


@dataclass(eq=False)
class Worker:
    """A worker as the parent sees it."""

    process: BaseProcess
    orders: Connection
    spec: RunSpec | None = None  # of the run that it computes

    def message(self) -> float | RunReport | ValueError | None:
        """Its message: how far it is, its run's report, or why there is none; None where it died."""
        try:
            return self.orders.recv() if self.orders.poll() else None
        except (EOFError, ConnectionResetError):
            return None


class WorkerPool:
    """A fixed number of worker processes. Use as a context manager."""

    def __init__(self, size: int, compute: Compute):
        self.size, self.compute_one = size, compute
        self.workers: list[Worker] = []

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.orders.close()
            if worker.spec is not None:
                worker.process.terminate()
        deadline = time.monotonic() + interruption.GRACE + GRACE
        for worker in self.workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.exitcode is None:
                worker.process.kill()
                worker.process.join()

    def start(self) -> Worker:
        """Start another worker."""
        spawn = multiprocessing.get_context("spawn")  # a forked child would inherit torch's thread pools
        ours, theirs = spawn.Pipe()
        # Not a daemon: an experiment may start processes of its own. A signal must neither part a worker from its
        # parent while it starts nor end it before it can leave a checkpoint: it waits until the worker looks.
        with interruption.blocked():
            process = spawn.Process(target=work, args=(theirs, self.compute_one))
            process.start()
            theirs.close()
            worker = Worker(process, ours)
            self.workers.append(worker)
        return worker

    def compute(self, specs: Sequence[RunSpec], progress: Callable[[str, float], None]) -> Iterator[RunReport]:
        """Hand out runs in order; yields the report of each as it ends.

        Where a device has no memory left for so many workers, one of them less goes on, and its run comes later:
        otherwise a worker that fails at once would take run after run from those that do not. Raises the ValueError
        that ``compute_one`` raises.
        """
        left = list(reversed(specs))
        while left or any(worker.spec for worker in self.workers):
            self.hand_out(left)
            for worker, spec in self.heard():
                message = worker.message()
                if message is None:
                    self.dismiss(worker)
                    yield RunReport(spec, "failed", why="its worker process died; run again to resume it")
                elif isinstance(message, ValueError):
                    raise message
                elif isinstance(message, float):
                    progress(spec.id, message)
                elif starved(message) and any(other.spec for other in self.workers if other is not worker):
                    self.dismiss(worker)  # with what it holds of the device; those that go on have room for theirs
                    self.size -= 1
                    left.append(spec)
                else:
                    worker.spec = None
                    yield message

    def heard(self) -> list[tuple[Worker, RunSpec]]:
        """Wait a while; the busy workers that have said something or died, with their runs."""
        pipes = {worker.orders: (worker, worker.spec) for worker in self.workers if worker.spec}
        ready = {pipe for pipe in wait(list(pipes), LOOK) if isinstance(pipe, Connection)}
        return [pair for pipe, pair in pipes.items() if pipe in ready or pair[0].process.exitcode is not None]

    def hand_out(self, left: list[RunSpec]) -> None:
        """Give every idle worker a run from the end of ``left``, starting what they need up to the pool's size."""
        idle = sum(worker.spec is None for worker in self.workers)
        for _ in range(min(self.size - len(self.workers), len(left) - idle)):
            self.start()
        for worker in list(self.workers):
            if left and worker.spec is None:
                try:
                    worker.orders.send(left[-1])
                except BrokenPipeError:  # it died idle; another is started in the next round
                    self.dismiss(worker)
                else:
                    worker.spec = left.pop()

    def dismiss(self, worker: Worker) -> None:
        """Forget a worker that has died, or end one that computes nothing."""
        self.workers.remove(worker)
        worker.orders.close()
        worker.process.join()
