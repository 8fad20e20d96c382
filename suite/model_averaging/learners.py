"""Several learners on one device: k replicas in one step, a number that may change between steps.

The values are those of :mod:`reference_impls.crossbow`; this holds what surrounds it: which learner reads which
batch, batch-norm statistics of learners that join, and the path (looped or vectorised) the gradients take.

Batches are taken from one sequence: an iteration of k learners takes the next k. *Deterministic* (the default),
learner j takes the j-th of them. By the scheduler's rule, first come first served, it depends on who finished first;
:func:`suite.model_averaging.task_schedule.assignment` says which. The centre's gradient sum is the same set of
batches either way, but each replica's own path differs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from reference_impls.contract import GradientRef, Turn
from reference_impls.crossbow import SMA, SMAState
from suite.communication.collectives import Local
from suite.model_averaging.task_schedule import Task
from suite.training.gradients.backend import Backend
from suite.training.gradients.batching import compute_gradients

Examples = Callable[[Tensor], Tensor]  # batch numbers [n] int64 -> example indices [n, b]


class Learners:
    """SMA with a number of learners that may change; ``k``, ``state`` and ``buffers`` are there to be read."""

    def __init__(self, algorithm: SMA, x0: Tensor, gradients: Backend, examples: Examples):
        """``x0`` [d]; ``examples`` maps batch numbers to indices of the problem's data set."""
        self.algorithm, self.gradients, self.examples = algorithm, gradients, examples
        self.state = algorithm.init(x0)
        self.buffers = gradients.problem.b0().expand(self.k, -1).clone()
        self.t = 0  # iterations done
        self.taken = 0  # batches taken from the sequence

    @property
    def k(self) -> int:
        return len(self.state.replicas)

    @property
    def centre(self) -> Tensor:
        """The central average model [d], which is the one evaluated."""
        return self.state.centre

    def step(self, lr: Tensor, numbers: Sequence[int] | None = None) -> Tensor:
        """One iteration: every learner reads one batch. Returns losses [k].

        ``numbers`` names the batch of each learner; by default the next k of the sequence in order. They must be
        those k in some order: a batch is removed from the set once taken (Alg. 1, lines 6-7).
        Raises ValueError otherwise.
        """
        following = list(range(self.taken, self.taken + self.k))
        if numbers is None:
            numbers = following
        elif sorted(numbers) != following:
            raise ValueError(f"batches {list(numbers)} are not the next {self.k}; those are {following}")
        turn = Turn(self.t, tuple(GradientRef(j, self.t, n) for j, n in enumerate(numbers)))
        points = self.algorithm.points(self.state, turn)
        losses, sums, self.buffers = compute_gradients(
            self.gradients, points, self.buffers, self.examples(points.batch)
        )
        self.state = self.algorithm.update(self.state, turn, losses, sums, lr)
        self.t += 1
        self.taken += self.k
        return losses

    def resize(self, learners: int) -> None:
        """Learners join (from the average model, with the mean batch-norm statistics) or leave, the last first.

        With several devices each keeps as many as the others. The batches already taken stay taken, so growing
        repeats none. Raises ValueError for fewer than one, or a number that does not fill the devices.
        """
        algorithm = replace(self.algorithm, collective=Local(learners))
        self.state, self.algorithm = algorithm.resize(self.state), algorithm
        self.buffers = algorithm.regrouped(self.buffers, self.buffers.mean(0))

    def take_up(self, state: SMAState, buffers: Tensor, t: int, taken: int) -> None:
        """Go on from what ``state``, ``buffers``, ``t`` and ``taken`` were, with as many learners as there were."""
        self.algorithm = replace(self.algorithm, collective=Local(len(state.replicas)))
        self.state, self.buffers, self.t, self.taken = state, buffers, t, taken

    def restart(self) -> None:
        """After a change of the learning rate."""
        self.state = self.algorithm.restart(self.state)


def on_streams(
    learners: int,
    iterations: int,
    x0: Tensor,
    gradient: Callable[[int, Tensor, int], Tensor],
    *,
    alpha: float,
    momentum: float,
    lr: float,
    first_come: bool = False,
) -> tuple[Tensor, Tensor, list[Task]]:
    """SMA without local momentum, executed task by task on one thread per learner and one for the average model.

    ``gradient(learner, w, batch)`` is a learning task: [d] -> [d]. Nothing but the data dependencies of section 4.2
    orders the tasks, so the global synchronisation of an iteration overlaps the learning tasks of the next.
    ``first_come`` lets each learner take the next batch when it comes free; otherwise learner j of iteration i takes
    batch i * k + j, and the result has the bits of the sequential rule.

    Returns replicas [k, d], centre [d] and the recorded tasks, seconds counted from the first.
    """
    z, z_prev = x0.clone(), x0.clone()
    w = [x0.clone() for _ in range(learners)]
    corrections: list[list[Tensor | None]] = [[None] * learners for _ in range(iterations)]
    differences_ready = [threading.Semaphore(0) for _ in range(iterations)]
    averaged = [threading.Event() for _ in range(iterations)]
    broken = threading.Event()
    lock, tasks, taken = threading.Lock(), list[Task](), 0
    began = time.perf_counter()

    def record(kind: Any, iteration: int, learner: int, batch: int, start: float) -> None:
        stream = f"learner {learner}" if learner >= 0 else "synchronisation 0"
        row = Task(kind, iteration, 0, stream, learner, batch, start - began, time.perf_counter() - began)
        with lock:
            tasks.append(row)

    def learner_stream(j: int) -> None:
        nonlocal taken
        for i in range(iterations):
            start = time.perf_counter()
            with lock:
                batch = taken if first_come else i * learners + j
                taken += 1
            step = lr * gradient(j, w[j], batch)
            record("learn", i, j, batch, start)
            if i:
                averaged[i - 1].wait()
            if broken.is_set():
                return
            start = time.perf_counter()
            correction = alpha * (w[j] - z)
            w[j] = w[j] - step - correction
            corrections[i][j] = correction
            record("local", i, j, -1, start)
            differences_ready[i].release()

    def synchronisation_stream() -> None:
        nonlocal z, z_prev
        for i in range(iterations):
            for _ in range(learners):
                differences_ready[i].acquire()
            if broken.is_set():
                return
            start = time.perf_counter()
            total = torch.stack([c for c in corrections[i] if c is not None]).sum(0)
            z, z_prev = z + total + momentum * (z - z_prev), z
            record("global", i, -1, -1, start)
            averaged[i].set()

    def guarded(stream: Callable[..., None], *arguments: int) -> None:
        """On an error every stream that waits is let go, so that the error can be raised."""
        try:
            stream(*arguments)
        except BaseException:
            broken.set()
            for i in range(iterations):
                averaged[i].set()
                differences_ready[i].release(learners)
            raise

    with ThreadPoolExecutor(learners + 1) as streams:
        running = [streams.submit(guarded, learner_stream, j) for j in range(learners)]
        running.append(streams.submit(guarded, synchronisation_stream))
        for one in running:
            one.result()
    return torch.stack(w), z, sorted(tasks, key=lambda task: task.start)
