"""A pool of workers, with threads in the place of its processes: who gets which run, and how it ends."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from suite import interruption
from suite.runner import workers
from suite.runner.workers import RunReport, Worker, WorkerPool, work
from suite.runs.run import StoreError
from suite.spec import RunSpec

NO_ROOM = "OutOfMemoryError: CUDA out of memory"
PATIENCE = 60.0  # seconds that a test waits for a thread of its own


class Thread(threading.Thread):
    """A worker as a process would be seen."""

    @property
    def exitcode(self) -> int | None:
        return None if self.is_alive() else 0

    def terminate(self) -> None:
        pass


class Pool(WorkerPool):
    started = 0

    def start(self) -> Worker:
        self.started += 1
        ours, theirs = multiprocessing.Pipe()
        thread = Thread(target=work, args=(theirs, self.compute_one), daemon=True)
        thread.start()
        self.workers.append(Worker(thread, ours))
        return self.workers[-1]


def runs(count: int) -> list[RunSpec]:
    return [RunSpec("toy/run", {}, seed) for seed in range(count)]


def stored(spec: RunSpec) -> RunReport:
    return RunReport(spec, "stored")


def seeds(reports: Iterator[RunReport]) -> list[int]:
    return [report.spec.seed for report in reports]


def test_one_worker_takes_the_runs_in_order_and_tells_how_far_each_is():
    told: list[tuple[str, float]] = []

    def compute(spec: RunSpec, *, progress: Callable[[float], None]) -> RunReport:
        progress(0.5)
        progress(1)
        return stored(spec)

    with Pool(1, compute) as pool:
        assert seeds(pool.compute(runs(4), lambda *one: told.append(one))) == [0, 1, 2, 3]
        assert pool.started == 1
    assert told == [(spec.id, fraction) for spec in runs(4) for fraction in (0.5, 1.0)]


def test_an_error_for_the_user_is_raised_as_where_one_process_computes():
    def compute(spec: RunSpec, *, progress: Callable[[float], None]) -> RunReport:
        raise StoreError("cannot write a store")

    with Pool(2, compute) as pool, pytest.raises(ValueError, match="cannot write a store"):
        list(pool.compute(runs(3), lambda *_: None))


def test_a_run_that_finds_no_memory_beside_others_comes_later_with_one_worker_less():
    """Of three places two are free: who comes third at the same time is sent away once."""
    three, lock, refused = threading.Barrier(3), threading.Lock(), []

    def compute(spec: RunSpec, *, progress: Callable[[float], None]) -> RunReport:
        with lock:
            first = spec.seed < 3 and spec.seed not in refused
            full = first and spec.seed == 1
            if full:
                refused.append(1)
        if first:
            three.wait(PATIENCE)
        if full:
            return RunReport(spec, "failed", why=NO_ROOM)
        if first:
            gone.wait(PATIENCE)
        return stored(spec)

    gone = threading.Event()

    class Watched(Pool):
        def dismiss(self, worker: Worker) -> None:
            super().dismiss(worker)
            gone.set()

    with Watched(3, compute) as pool:
        found = {report.spec.seed: report.state for report in pool.compute(runs(5), lambda *_: None)}
        assert (pool.size, pool.started, len(pool.workers)) == (2, 3, 2)
    assert found == dict.fromkeys(range(5), "stored")


def test_a_run_that_finds_no_memory_alone_or_whose_worker_dies_has_failed():
    def compute(spec: RunSpec, *, progress: Callable[[float], None]) -> RunReport:
        if spec.seed == 1:
            raise BrokenPipeError  # as where its parent were gone: the worker leaves without a word
        return RunReport(spec, "failed", why=NO_ROOM)

    with Pool(2, compute) as pool:
        found = {report.spec.seed: report.why for report in pool.compute(runs(3), lambda *_: None)}
    assert found == {0: NO_ROOM, 1: "its worker process died; run again to resume it", 2: NO_ROOM}


class Process:
    """A process that ends when it is killed, and otherwise as it is told; remembers what was asked of it."""

    def __init__(self, exitcode: int | None):
        self.exitcode, self.asked = exitcode, []

    def terminate(self) -> None:
        self.asked.append("terminate")

    def join(self, timeout: float | None = None) -> None:
        self.asked.append(timeout)

    def kill(self) -> None:
        self.asked.append("kill")


@pytest.mark.parametrize(("passes", "rest"), [(0.0, 20.0), (7.0, 13.0), (30.0, 0.0)])
def test_who_computes_is_asked_to_stop_and_has_time_for_a_checkpoint_before_it_is_killed(
    monkeypatch: pytest.MonkeyPatch, passes: float, rest: float
):
    """Fifteen seconds for the checkpoint and five more for all of them together, of which some have passed."""
    assert interruption.GRACE + workers.GRACE == 20.0
    clock = iter([100.0, 100.0 + passes, 100.0 + passes])
    monkeypatch.setattr(workers.time, "monotonic", lambda: next(clock))
    busy, idle = Process(None), Process(0)
    pipes = [multiprocessing.Pipe() for _ in range(2)]
    with closing(pipes[0][1]), closing(pipes[1][1]):
        with WorkerPool(2, lambda spec, *, progress: stored(spec)) as pool:
            pool.workers += [Worker(busy, pipes[0][0], runs(1)[0]), Worker(idle, pipes[1][0])]
        assert all(ours.closed for ours, _ in pipes)
    assert busy.asked == ["terminate", rest, "kill", None]
    assert idle.asked == [rest]
