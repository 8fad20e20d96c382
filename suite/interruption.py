"""SIGINT, SIGTERM and SIGUSR1: the run under way leaves a checkpoint at its next update, and the session ends.

A run that does not look (:attr:`suite.experiment.Context.late`) is ended ``GRACE`` seconds later, without one, or by
a second Ctrl-C. Other signals come twice of themselves: from a scheduler to every process, and from a parent to its
workers. Nothing but :func:`watched` installs handlers.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
GRACE = 15.0  # seconds for the next update and its checkpoint; schedulers kill 30 s after SIGTERM
IMPATIENT = 1.0  # seconds after the first signal from which a Ctrl-C is meant


class Interrupted(BaseException):
    """A signal asked this process to leave. Not an Exception: no run may take it for a failure of its own."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """As a shell tells it of a process that the signal ended."""
        return 128 + self.number

    def __str__(self) -> str:
        name = signal.Signals(self.number).name
        return f"interrupted by {name}: what is finished stays, and the same command goes on from there"


_received: int | None = None  # the first signal since ``watched`` began
_when = 0.0  # time.monotonic() at which it came
_deferring = 0  # how many blocks want to look for themselves


def asked_to_stop() -> bool:
    """Whether a signal has come; for what stops at a place of its own choice."""
    return _received is not None


def leave_if_asked() -> None:
    """Raise Interrupted if a signal has come."""
    if _received is not None:
        raise Interrupted(_received)


def _handle(number: int, frame: FrameType | None) -> None:
    global _received, _when
    if number == signal.SIGALRM or not _deferring:
        _received = _received or number
        raise Interrupted(_received)
    if _received is None:
        _received, _when = number, time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, GRACE)
    elif number == signal.SIGINT and time.monotonic() - _when > IMPATIENT:
        raise Interrupted(_received)


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Signals raise Interrupted in this block. Only the main thread can watch; in others nothing changes."""
    global _received
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _received = None
    before = {number: signal.signal(number, _handle) for number in (*SIGNALS, signal.SIGALRM)}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        _received = None


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Within ``watched``: the first signal only shows in ``asked_to_stop``, for ``GRACE`` seconds."""
    global _deferring
    _deferring += 1
    try:
        yield
    finally:
        _deferring -= 1
        if not _deferring:
            signal.setitimer(signal.ITIMER_REAL, 0)


@contextlib.contextmanager
def blocked(signals: Iterable[signal.Signals] = SIGNALS) -> Iterator[None]:
    """None of these signals comes in this block; processes started in it begin with them blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
