"""Worker processes: each computes one run at a time, handed to it through a pipe of its own.

Nothing is shared between workers, so one that is killed at any instant cannot hold a lock that the others need,
and the parent always knows which run it had.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Protocol

from suite import interruption
from suite.runner.report import Report
from suite.spec import RunSpec

LOOK = 1.0  # seconds between two looks at whether a silent worker still lives
GRACE = 5.0  # seconds more than a run may take to leave its checkpoint, after which a worker is killed


class Compute(Protocol):
    """What a worker does with a specification: importable by name, and pickled once when the worker starts."""

    def __call__(self, spec: RunSpec, *, progress: Callable[[float], None]) -> Any: ...


def work(orders: Connection, compute: Compute) -> None:
    """A worker process: specifications come in, fractions (float) and one report each go out.

    It leaves when the parent closes the pipe or is gone, and on a signal, with a checkpoint.
    """
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError, interruption.Interrupted):  # noqa: SIM117
        with interruption.watched():
            while True:
                spec = orders.recv()
                orders.send(compute(spec, progress=lambda fraction: orders.send(float(fraction))))
                interruption.leave_if_asked()


@dataclass(eq=False)
class Member:
    """A worker as the parent sees it."""

    process: BaseProcess
    orders: Connection
    spec: RunSpec | None = None


class Crew:
    """A fixed number of worker processes. Use as a context manager."""

    def __init__(self, size: int, compute: Compute):
        self.size, self.compute_one = size, compute
        self.members: list[Member] = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members:
            member.orders.close()
            if member.spec is not None:
                member.process.terminate()
        deadline = time.monotonic() + interruption.GRACE + GRACE
        for member in self.members:
            member.process.join(max(0.0, deadline - time.monotonic()))
            if member.process.exitcode is None:
                member.process.kill()
                member.process.join()

    def hire(self) -> Member:
        """Start another worker."""
        spawn = multiprocessing.get_context("spawn")  # a forked child would inherit torch's thread pools
        ours, theirs = spawn.Pipe()
        # Not a daemon: an experiment may start processes of its own. A signal must neither part a worker from its
        # parent while it starts nor end it before it can leave a checkpoint: it waits until the worker looks.
        with interruption.blocked():
            process = spawn.Process(target=work, args=(theirs, self.compute_one))
            process.start()
            theirs.close()
            member = Member(process, ours)
            self.members.append(member)
        return member

    def compute(self, specs: Sequence[RunSpec], progress: Callable[[str, float], None]) -> Iterator[Any]:
        """Hand out specifications in order; yields reports as they come."""
        left = list(reversed(specs))
        while left or any(member.spec for member in self.members):
            self.hand_out(left)
            pipes = {member.orders: member for member in self.members if member.spec}
            ready = [pipes[pipe] for pipe in wait(list(pipes), LOOK)]  # type: ignore[index]
            dead = [member for member in pipes.values() if member.process.exitcode is not None]
            for member in dict.fromkeys([*ready, *dead]):
                spec = member.spec
                assert spec is not None
                try:
                    message = member.orders.recv() if member.orders.poll() else None
                except (EOFError, ConnectionResetError):
                    message = None
                if message is None:
                    self.dismiss(member)
                    yield Report(spec, "failed", why="its worker process died; run again to resume it")
                elif isinstance(message, float):
                    progress(spec.id, message)
                else:
                    member.spec = None
                    yield message

    def hand_out(self, left: list[RunSpec]) -> None:
        """Give every idle worker a specification from the end of ``left``, hiring up to the crew's size."""
        while left and len(self.members) < self.size:
            self.hire()
        for member in list(self.members):
            if left and member.spec is None:
                try:
                    member.orders.send(left[-1])
                except BrokenPipeError:  # it died idle; another is hired in the next round
                    self.dismiss(member)
                else:
                    member.spec = left.pop()

    def dismiss(self, member: Member) -> None:
        """Forget a worker that has died."""
        self.members.remove(member)
        member.orders.close()
        member.process.join()
