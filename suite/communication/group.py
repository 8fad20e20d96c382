"""Workers as processes: start-up, agreement before the first update, and an end when one of them is lost.

A program is started by ``torchrun`` on one or several nodes and calls :func:`join`; tests and benchmarks start theirs
with :func:`suite.communication.launch.spawn`. Either way every worker signs a heartbeat in the rendezvous store. When
a sum fails or times out, the heartbeats tell which worker is missing, and :class:`WorkerLost` names it. A worker in
an exchange that cannot be interrupted is ended by its own heartbeat thread once the grace period is over, so that
nothing waits for ever. One that waits for nobody (an evaluation, the end of its program) is left alone.

Under NCCL no sum can be interrupted: waiting for it queues the wait on the GPU and returns, and the host stops at the
next value that it reads. A lost worker therefore ends the others through their heartbeats, with its number and status
70, and never raises WorkerLost there; NCCL's own watchdog, which ends a process without a name, waits until they had
their chance, and remains for workers that are alive and never come. None of this has run on a GPU yet.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

TIMEOUT = 60.0  # seconds without an answer after which a worker counts as lost
# torch 2.14 named in public what every earlier release has under the other name
_set_timeout = getattr(dist, "set_timeout", None) or distributed_c10d._set_pg_timeout
START_UP = 60.0  # seconds that workers have at least to import, meet and connect, on a machine however busy
WATCHDOG = 3  # timeouts after which NCCL ends a process by itself; heartbeats need two
SIGNATURE = re.compile(rb"\d{1,30} \d{1,18} [ -~]{0,200}")  # nanoseconds of its clock, its update, its exchange
LOST = 70  # exit status of a worker that its heartbeat thread ended


class WorkerLost(RuntimeError):
    """Another worker died or stopped answering; this one stops instead of waiting for ever."""


class Group:
    """The processes that train together. Made by :func:`join`.

    ``rank`` is this process among ``size``; ``timeout`` seconds is how long a sum may wait for another worker,
    which must therefore exceed whatever one worker does alone (an evaluation, a slow first batch). When a worker
    dies or stalls, those that wait for it have raised WorkerLost, or been ended, within three timeouts.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: float, backend: str):
        self.rank, self.size, self.timeout, self.backend = rank, size, timeout, backend
        self.joined = False  # whether the default process group is this group's, and not the caller's
        self._store = dist.PrefixStore("suite", store)
        self._lanes: list[Any] = []
        self._agreements = 0
        # a client of its own: waiting in one thread must not keep the other from signing
        self.heartbeat = Heartbeat(dist.PrefixStore("suite", store.clone()), rank, size, timeout)

    def wait_for(self, timeout: float) -> None:
        """Change the ``timeout``. Every worker must call it; the longer of both holds until all have.

        Raises ValueError for a timeout that is not positive, and where workers differ in it.
        """
        if timeout <= 0:
            raise ValueError(f"timeout={timeout} must be a positive number of seconds")
        self.timeout = max(self.timeout, timeout)
        self.agree({"timeout": timeout})
        self.timeout = timeout
        self.heartbeat = self.heartbeat.renewed(timeout)
        for lane in self._lanes if self.size > 1 else ():
            _set_timeout(self.patience, lane)

    @property
    def patience(self) -> timedelta:
        """How long torch lets a sum wait: NCCL's watchdog leaves heartbeats their chance."""
        return timedelta(seconds=self.timeout * (WATCHDOG if self.backend == "nccl" else 1))

    @property
    def device(self) -> torch.device:
        """Where this worker computes: its own GPU under NCCL, otherwise the CPU."""
        return device_under(self.backend)

    def lanes(self, count: int) -> list[Any]:
        """``count`` process groups of all workers, on which sums can be under way independently.

        One under NCCL: its sums are queued on the GPU, so that several can be under way on one communicator, while
        kernels of several, launched in another order on each GPU, can wait for each other for ever. None is the
        default process group, which is taken where it is this group's; the caller's has a timeout of its own.
        """
        wanted = 1 if self.backend == "nccl" else count
        if not self._lanes and (self.joined or self.size == 1):
            self._lanes = [None]
        while len(self._lanes) < wanted and self.size > 1:
            with self.watched("making a process group"):
                self._lanes.append(dist.new_group(timeout=self.patience))
        return self._lanes[:wanted]

    def agree(self, facts: Mapping[str, Any]) -> None:
        """Compare plain ``facts`` by name with those of every other worker, before anything is exchanged.

        Raises ValueError, on every worker, naming the first fact that differs and who holds which value.
        """
        everyone = self.everyone(dict(facts), f"the agreement on {', '.join(facts)}")
        for name in sorted({name for held in everyone for name in held}):
            values = [held.get(name) for held in everyone]
            if odd := [rank for rank, value in enumerate(values) if value != values[0]]:
                raise ValueError(
                    f"worker {odd[0]} has {name} = {values[odd[0]]!r} where worker 0 has {values[0]!r}; "
                    f"start every worker with the same {name.removeprefix('the ')}"
                )

    def everyone(self, value: Any, what: str = "an agreement") -> list[Any]:
        """The plain value that each worker brings, by rank. Every worker must call it; all wait for the last.

        ``what`` it is for is told where one does not come. It goes by the rendezvous store, so that a worker in
        another exchange finds no sum of another size.
        """
        self._agreements += 1
        if self.size == 1:
            return [json.loads(json.dumps(value))]
        prefix = f"facts/{self._agreements}"
        self._store.set(f"{prefix}/{self.rank}", json.dumps(value))
        keys = [f"{prefix}/{rank}" for rank in range(self.size)]
        with self.watched(what):
            self._store.wait(keys, timedelta(seconds=self.timeout))
        return [json.loads(self._store.get(key)) for key in keys]

    def broadcast(self, tensor: torch.Tensor) -> None:
        """Overwrite ``tensor`` on every worker with that of worker 0."""
        if self.size > 1:
            with self.watched("taking up worker 0's weights"):
                dist.broadcast(tensor, 0, group=self.lanes(1)[0])
                self.queued()

    def queued(self) -> None:
        """Let the heartbeat know that under NCCL the GPU waits for an exchange, and the host at its next value."""
        if self.backend == "nccl":
            self.heartbeat.queued = torch.cuda.current_stream().record_event()

    @contextlib.contextmanager
    def watched(self, what: str = "") -> Iterator[None]:
        """Turn a failed or timed-out exchange into WorkerLost with the name of who is missing, and for ``what``."""
        self.heartbeat.waiting += 1
        before, self.heartbeat.doing = self.heartbeat.doing, what or self.heartbeat.doing
        try:
            yield
        except (RuntimeError, dist.DistError) as error:
            if isinstance(error, WorkerLost):
                raise
            reason = str(error).strip().partition("\n")[0].partition(". This is typically")[0] or type(error).__name__
            where = f" in {what}" if what else ""
            raise WorkerLost(f"worker {self.rank} stops{where}: {self.heartbeat.suspect()} ({reason})") from error
        finally:
            self.heartbeat.waiting -= 1
            self.heartbeat.doing = before


class Heartbeat:
    """A thread that signs for this worker and notices when another stops signing.

    A worker signs four times per ``timeout``. ``suspect`` says who is missing. Once another worker's signature is
    older than ``timeout`` while an exchange is under way, the main thread has a further ``timeout`` to find out by
    itself (through a failed sum) before the process is ended with status 70. The thread ends with the default process
    group that it began with, and where the store is gone with nothing under way.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: float):
        self._store, self.rank, self.size, self.timeout = store, rank, size, timeout
        self.updates = 0  # completed by this worker; signed with the heartbeat
        self.waiting = 0  # exchanges that this worker is in
        self.doing = ""  # the last of them; signed with the heartbeat
        self.queued: torch.cuda.Event | None = None  # behind the last exchange that the GPU waits for
        self._seen: dict[int, tuple[bytes, float]] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def renewed(self, timeout: float) -> Heartbeat:
        """One with another timeout in place of this one, which ends; it beats if this one did."""
        other, beats = Heartbeat(self._store, self.rank, self.size, timeout), self._thread.is_alive()
        other.updates, other.waiting, other.queued = self.updates, self.waiting, self.queued
        self.stop()
        if beats:
            other.start()
        return other

    def start(self) -> None:
        self._sign()
        if self.size > 1:
            self._thread.start()

    def stop(self) -> None:
        """Sign off: the others must not miss a worker that has finished."""
        if self._done.is_set():
            return
        self._done.set()
        if self._thread.is_alive():
            self._thread.join(self.timeout)
        with contextlib.suppress(RuntimeError, dist.DistError):
            self._store.set(f"beat/{self.rank}", "finished")

    @property
    def under_way(self) -> bool:
        """Whether this worker waits for others, or its GPU does."""
        return self.waiting > 0 or (self.queued is not None and not self.queued.query())

    def _sign(self) -> None:
        self._store.set(f"beat/{self.rank}", f"{time.monotonic_ns()} {self.updates} {self.doing}")

    def _look(self) -> dict[int, tuple[float, str, str]]:
        """By rank of every other worker that has signed and not finished: seconds since, its update, its exchange."""
        now, ages = time.monotonic(), {}
        for rank in range(self.size):
            key = f"beat/{rank}"
            if rank == self.rank or not self._store.check([key]):
                continue
            signature = self._signature(key)
            if signature == b"finished":
                continue
            if rank not in self._seen or (signature and self._seen[rank][0] != signature):
                self._seen[rank] = (signature, now)
            last, since = self._seen[rank]
            _, update, doing = last.decode().split(" ", 2) if last else ("", "0", "")
            ages[rank] = (now - since, update, doing)
        return ages

    def _signature(self, key: str) -> bytes:
        """A worker's signature; empty where it is none, which counts as silence.

        Any host that reaches a store which listens on a port can write there, and an empty value fails to be read.
        """
        try:
            found = self._store.get(key)
        except (RuntimeError, dist.DistError):
            raise
        except Exception:
            return b""
        return found if found == b"finished" or SIGNATURE.fullmatch(found) else b""

    def _beat(self) -> None:
        overdue: float | None = None
        joined = dist.is_initialized()
        while not self._done.wait(self.timeout / 4):
            if joined and not dist.is_initialized():
                break
            try:
                self._sign()
                late = [rank for rank, (age, *_) in self._look().items() if age > self.timeout]
                why = f"worker {late[0]} has not signed for {self.timeout:g} s" if late else ""
            except (RuntimeError, dist.DistError):
                late, why = [-1], "the rendezvous store is gone, and with it the process that held it"
            if not late or not self.under_way:
                overdue = None
                if late == [-1]:
                    break
            elif overdue is None:
                overdue = time.monotonic()
            elif time.monotonic() - overdue > self.timeout:
                print(f"worker {self.rank} is ended: {why}; last stack:", file=sys.stderr, flush=True)
                faulthandler.dump_traceback(sys.stderr)
                os._exit(LOST)
        self._done.set()

    def suspect(self) -> str:
        """Who is missing, from two looks half a heartbeat apart or more; a dead worker's signature stands still."""
        try:
            self._look()
            time.sleep(0.6 * self.timeout)
            ages = self._look()
        except (RuntimeError, dist.DistError):
            return "the rendezvous store is gone, and with it the process that held it"
        silent = {rank: seen for rank, seen in ages.items() if seen[0] > 0.5 * self.timeout}
        if silent:
            rank, (_, update, _) = max(silent.items(), key=lambda item: item[1][0])
            return f"worker {rank} of {self.size} is gone; it was last seen after update {update}"
        behind = {rank: int(update) for rank, (_, update, _) in ages.items() if int(update) < self.updates}
        apart = {rank: int(update) for rank, (_, update, doing) in ages.items() if doing != self.doing}
        if others := behind or apart:
            rank = min(others, key=others.__getitem__)
            where = f", in {ages[rank][2]}" if ages[rank][2] else ""
            return (
                f"worker {rank} of {self.size} is alive but has not answered within {self.timeout:g} s; it stands "
                f"at update {others[rank]}{where}, this one at {self.updates}"
            )
        gone = sorted(set(range(self.size)) - set(ages) - {self.rank})
        if gone:
            return f"worker {gone[0]} of {self.size} has left"
        return f"another worker has not answered within {self.timeout:g} s"


def number_from_environment(name: str, default: int, least: int) -> int:
    """A number that torchrun hands to every process, in its environment.

    Raises ValueError for what is no whole number of at least ``least``.
    """
    said = os.environ.get(name, str(default))
    if re.fullmatch(r"\d{1,9}", said) is None or int(said) < least:
        raise ValueError(
            f"{name}={said!r} in the environment must be a whole number of at least {least}; start the processes "
            "with torchrun, which sets it, or unset WORLD_SIZE to train alone"
        )
    return int(said)


def meeting_place(rank: int, size: int, patience: timedelta) -> Any:
    """The store where torchrun's processes meet, by the environment.

    Raises ValueError for an environment that does not say where, and WorkerLost where the others do not come.
    """
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]
    if missing or rank >= size:
        wrong = f"{missing[0]} is not set" if missing else f"RANK={rank} is not below WORLD_SIZE={size}"
        raise ValueError(
            f"WORLD_SIZE={size} in the environment says that {size} processes train together, but {wrong}; start "
            "them with torchrun, which sets it, or unset WORLD_SIZE to train alone"
        )
    number_from_environment("MASTER_PORT", 0, least=0)
    try:
        return next(iter(dist.rendezvous("env://", rank, size, timeout=patience)))[0]
    except (RuntimeError, dist.DistError) as error:
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        reason = str(error).strip().partition("\n")[0]
        raise WorkerLost(f"worker {rank} of {size} has not met the others at {where}: {reason}") from error


def fitting_backend() -> str:
    """How the processes of this machine can exchange tensors."""
    everywhere = number_from_environment("WORLD_SIZE", 1, least=1)
    here = number_from_environment("LOCAL_WORLD_SIZE", everywhere, least=1)
    return "nccl" if torch.cuda.is_available() and here <= torch.cuda.device_count() else "gloo"


def device_under(backend: str) -> torch.device:
    """Where a process of this machine computes: its own GPU under NCCL, otherwise the CPU."""
    if backend != "nccl":
        return torch.device("cpu")
    return torch.device("cuda", number_from_environment("LOCAL_RANK", 0, least=0))


@contextlib.contextmanager
def join(*, timeout: float = TIMEOUT, backend: str | None = None, store: Any = None) -> Iterator[Group]:
    """The group of this process, as a context: ``torchrun`` or ``spawn`` says which one it is.

    Without either the group has one member. ``backend`` is "nccl" where there is a GPU for each process
    of this machine, else "gloo": NCCL refuses two processes on one.
    Raises ValueError for a timeout that is not positive and an environment that is not torchrun's, and WorkerLost
    when the others do not come, for which they have the longer of ``timeout`` and START_UP.
    """
    if timeout <= 0:
        raise ValueError(f"timeout={timeout} must be a positive number of seconds")
    backend = backend or fitting_backend()
    rank, size = number_from_environment("RANK", 0, least=0), number_from_environment("WORLD_SIZE", 1, least=1)
    patience = timedelta(seconds=max(timeout, START_UP))
    if store is None and size > 1:
        store = meeting_place(rank, size, patience)
    group = Group(store or dist.HashStore(), rank, size, timeout, backend)
    if backend == "nccl":
        torch.cuda.set_device(group.device)
    try:
        if size > 1:
            with group.watched():
                dist.init_process_group(
                    backend, store=dist.PrefixStore("torch", store), rank=rank, world_size=size, timeout=patience
                )
            group.joined = True
            _set_timeout(group.patience)
        group.heartbeat.start()
        yield group
    finally:
        group.heartbeat.stop()
        if dist.is_initialized():
            dist.destroy_process_group()
