"""Crossbow's task engine: learners as tasks over replicas, which several workers run as their dependencies allow.

Koliousis et al., "Crossbow", PVLDB 12(11), 2019, sections 4.1 to 4.5. A worker takes whatever task the
:class:`~suite.model_averaging.task_schedule.Scheduler` names next; the schedules in virtual time ask the same
object. The values are those of :class:`Learners` with the batches that were handed out.

On a CPU a worker is a thread: machine code and large operations leave the interpreter, so threads share the cores.
On a GPU each worker issues its tasks to a stream of its own and waits for its last one, so tasks of several workers
run side by side there. That form has not run on a GPU yet; it is exercised with tensors that have no values.

A learning task borrows what a gradient needs beside the replica (activations, scratch memory) from a pool that the
learners share: the first that is free, a new one if none is. So memory grows with the workers, not with the
learners.

:class:`Learners` are k replicas in one step, a number that may change between steps. Their values are those of
:mod:`reference_impls.crossbow`; this holds what surrounds it: which learner reads which batch, batch-norm
statistics of learners that join, and the path (looped or vectorised) the gradients take.

Batches are taken from one sequence: an iteration of k learners takes the next k. *Deterministic* (the default),
learner j takes the j-th of them. By the scheduler's rule, first come first served, it depends on who finished
first. The centre's gradient sum is the same set of batches either way, but each replica's own path differs.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from reference_impls.contract import GradientRef, Turn
from reference_impls.crossbow import SMA, SMAState
from suite.communication.collectives import Local
from suite.model_averaging.task_schedule import Policy, Ready, Scheduler, Task, recorded
from suite.training.flat import FlatModule
from suite.training.gradients.backend import Backend, compute_gradients

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

        ``numbers`` names the batch of each learner, which are the next k of the sequence in some order: a batch is
        removed from the set once taken (Alg. 1, lines 6-7). By default they are in order.
        """
        if numbers is None:
            numbers = range(self.taken, self.taken + self.k)
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


Lane = Callable[[], AbstractContextManager[Any]]
"""Where a worker runs a task; when it is left the task is done."""


class Engine:
    """Trains learners task by task, each of which borrows a set of activations while it learns.

    Args:
        learners: they average flat, in every turn.
        workers: threads, or streams; as many as a device has cores for.
        policy: who gets the next batch.
        overlap: whether learning tasks run beside the global synchronisation of the iteration before.

    Masks of dropout are drawn in the order in which tasks happen to run.

    Raises:
        ValueError: for learners that average otherwise.

    Example:
        >>> from reference_impls.crossbow import SMA
        >>> from suite.communication.collectives import Local
        >>> from suite.training.gradients.backend import Functional
        >>> from suite.training.optimizers import CaffeSGD
        >>> from suite.training.problem import QuadraticProblem
        >>> problem = QuadraticProblem(torch.ones(8, 3), torch.ones(3))
        >>> sma = SMA(CaffeSGD(), Local(2))
        >>> learners = Learners(sma, torch.zeros(3), Functional(problem), lambda numbers: numbers[:, None] % 8)
        >>> tasks = Engine(learners, workers=2).run(5, torch.tensor(0.1))
        >>> sum(task.kind == "learn" for task in tasks), learners.t, learners.taken
        (10, 5, 10)
    """

    def __init__(self, learners: Learners, workers: int, policy: Policy = "first-come", *, overlap: bool = True):
        if learners.algorithm.devices or learners.algorithm.tau != 1:
            raise ValueError("the engine takes learners that average flat in every turn: devices=None and tau=1")
        self.learners, self.workers, self.policy, self.overlap = learners, workers, policy, overlap
        self.lanes = [lane(learners.centre.device) for _ in range(workers)]
        self.free: list[Backend] = []  # sets of activations that no task uses
        self.changed = threading.Condition()

    def run(self, iterations: int, lr: Tensor) -> list[Task]:
        """Train; returns the tasks as they ran, seconds counted from the first. A barrier stands at the end."""
        learners = self.learners
        self.scheduler = Scheduler(learners.k, iterations, self.policy, overlap=self.overlap)
        self.lr, self.broken, self.began, self.tasks = lr, False, time.perf_counter(), list[Task]()
        self.gradients = torch.empty_like(learners.state.replicas)  # [k, d], of learning tasks
        self.corrections = torch.empty_like(learners.state.replicas)  # [k, d], of local ones
        with ThreadPoolExecutor(max(1, self.workers - 1)) as threads:
            others = [threads.submit(self.work, lane) for lane in self.lanes[1:]]
            self.work(self.lanes[0])
            for other in others:
                other.result()
        learners.t += iterations
        learners.taken += iterations * learners.k
        return sorted(self.tasks, key=lambda task: (task.start, task.stream))

    def work(self, lane: Lane) -> None:
        """Run tasks until there are none left. An error ends the work of all."""
        try:
            while (task := self.next()) is not None:
                start = time.perf_counter()
                with lane():
                    TASKS[task.kind](self, task)
                self.done(task, start)
        except BaseException:
            with self.changed:
                self.broken = True
                self.changed.notify_all()
            raise

    def next(self) -> Ready | None:
        """A task, once there is one; None at the end."""
        with self.changed:
            while not (self.broken or self.scheduler.finished):
                if task := self.scheduler.next():
                    return task
                self.changed.wait()
        return None

    def done(self, task: Ready, start: float) -> None:
        end = time.perf_counter() - self.began
        with self.changed:
            self.scheduler.done(task)
            self.tasks += recorded(task, start - self.began, end, self.learners.k)
            self.changed.notify_all()

    # ---------------------------------------------------------------- tasks: each touches what no other one does

    def learn(self, task: Ready) -> None:
        """The gradient of a replica on a batch."""
        learners, row = self.learners, slice(task.learner, task.learner + 1)
        number = torch.tensor([learners.taken + task.batch])
        examples = learners.examples(number.to(learners.centre.device, non_blocking=True))
        with self.borrowed() as backend:
            rows = backend.of_examples(learners.state.replicas[row], learners.buffers[row], examples.unbind())
            _, gradients, buffers = rows
            self.gradients[row].copy_(gradients)
            learners.buffers[row].copy_(buffers)

    def local(self, task: Ready) -> None:
        """A replica's step along its gradient, and its correction towards the average model."""
        algorithm, state, row = self.learners.algorithm, self.learners.state, slice(task.learner, task.learner + 1)
        w, kept = state.replicas[row], state.memory[row]
        stepped, memory = algorithm.optimizer.step(kept, w, self.gradients[row], self.lr)
        self.corrections[row], _ = algorithm.corrections(w, state.centre)
        torch.sub(stepped, self.corrections[row], out=w)
        if memory is not kept:  # a solver that works in place returns what it was given
            kept.copy_(memory)

    def average(self, task: Ready) -> None:
        """The average model moves by all corrections."""
        learners, state = self.learners, self.learners.state
        centre = learners.algorithm.averaged(state.centre, state.previous, self.corrections)
        learners.state = state._replace(centre=centre, previous=state.centre)

    @contextmanager
    def borrowed(self) -> Iterator[Backend]:
        """A backend that no other task uses."""
        with self.changed:
            backend = self.free.pop() if self.free else another(self.learners.gradients)
        try:
            yield backend
        finally:
            with self.changed:
                self.free.append(backend)


TASKS: dict[str, Callable[[Engine, Ready], None]] = {
    "learn": Engine.learn,
    "local": Engine.local,
    "global": Engine.average,
}


def another(gradients: Backend) -> Backend:
    """A backend of the same kind, whose network and scratch memory are its own."""
    problem = copy.copy(gradients.problem)
    if flat := getattr(problem, "flat", None):
        problem.flat = FlatModule(copy.deepcopy(flat.module), channels_last=flat.channels_last)
    return type(gradients).of_run(problem, getattr(getattr(gradients, "library", None), "build", None))


def lane(device: torch.device) -> Lane:
    """A lane of its own on a device: a stream on a GPU, nothing on a CPU."""
    if device.type != "cuda":
        return nullcontext
    stream = torch.cuda.Stream(device)

    @contextmanager
    def issued() -> Iterator[None]:
        stream.wait_stream(torch.cuda.current_stream(device))  # which made the state that the first tasks read
        with torch.cuda.stream(stream):
            yield
        stream.synchronize()

    return issued
