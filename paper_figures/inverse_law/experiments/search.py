"""A search for first crossings: plain SGD that steps from any state, and the run that makes a search of it.

:class:`SteppedSgd` makes the updates as a pure function of the state and the batch number; :class:`SearchRun` steps
and tests it, checkpoints and resumes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from reference_impls.contract import Optimizer
from reference_impls.inverse_law import SGD
from suite.batch_size.trainer import Monitor, Search, Test
from suite.communication.collectives import in_process
from suite.experiment import Context, Outcome, OutOfTime, RunSpec
from suite.lazy import pd
from suite.training import checkpoint
from suite.training.gradients.backend import Backend, compute_gradients
from suite.training.loop import rounds
from suite.training.loss_reading import LossReading
from suite.training.optimizers import in_place


class Trained(NamedTuple):
    """What an update goes on from. A replay that left the statistics where they are would test what never was."""

    state: Any  # of the algorithm
    buffers: Tensor  # [workers, q] of each worker's network, such as the running statistics of batch norm


Judge = Callable[[Trained], dict[str, Any]]


class SteppedSgd:
    """Rounds of all workers, batch number t split over them in update t.

    A subclass says which examples a batch number means (``examples``) and how a loss is read (``reader``).
    """

    test_examples: int  # that a reading looks at

    def __init__(self, backend: Backend, optimizer: Optimizer, rate: Tensor, workers: int = 1):
        """``backend`` knows its problem, flat parameters with ``b0()``; ``rate`` is 0-d."""
        self.backend, self.problem = backend, backend.problem
        self.flat, self.rate, self.workers = self.problem.flat, rate, workers
        self.algorithm = in_place(SGD(optimizer, in_process(workers)), self.flat.x.device)
        self.step = backend.step(self.algorithm)
        self.seconds = 0.0  # spent on updates alone
        self.looked: dict[str, Tensor] = {}  # by sample, what the order of its next test depends on; in checkpoints

    def examples(self, t: int) -> Tensor:
        """Numbers of the examples [workers, b] of update t."""
        raise NotImplementedError

    def reader(self, sample: str) -> Callable[[Any, float], LossReading]:
        """How a monitor reads the loss of a state on a sample, against a threshold."""
        raise NotImplementedError

    def start(self) -> Trained:
        """What the first update goes on from."""
        return Trained(self.algorithm.init(self.flat.point()), self.problem.b0()[None].repeat(self.workers, 1))

    def advance(self, trained: Trained, first: int, last: int) -> Trained:
        """What updates ``first`` .. ``last - 1`` make of it; what is passed in stays as it is."""
        began = time.perf_counter()
        mine = trained = copied(trained)
        for t in range(first, last):
            trained = self.update(trained, t)
        if self.step is not None and trained.state is not mine.state:
            trained = copied(trained)  # a captured update keeps one state, which the next call overwrites
        self.seconds += time.perf_counter() - began
        return trained

    def update(self, trained: Trained, t: int) -> Trained:
        """What update t makes of it; what is passed in may be overwritten."""
        state, buffers = trained
        turn = next(rounds(self.workers, start=t))
        points, examples = self.algorithm.points(state, turn), self.examples(t)
        if self.step is None:
            losses, sums, buffers = compute_gradients(self.backend, points, buffers, examples)
            return Trained(self.algorithm.update(state, turn, losses, sums, self.rate), buffers)
        state, buffers, _ = self.step(turn, points, state, buffers, examples, self.rate)
        return Trained(state, buffers)

    def load(self, trained: Trained) -> None:
        """Put its weights, and the first worker's buffers, into the network."""
        self.flat.load(self.algorithm.model(trained.state), trained.buffers[0])


def copied(trained: Trained) -> Trained:
    """Tensors that may be overwritten."""
    state, buffers = trained
    return Trained(type(state)(*(tensor.clone() for tensor in state)), buffers.clone())


class SearchRun:
    """One run of a search. ``judge`` adds results about the state in which it ended."""

    def __init__(self, spec: RunSpec, context: Context, trainer: SteppedSgd, judge: Judge = lambda trained: {}):
        self.spec, self.context, self.trainer, self.judge = spec, context, trainer, judge
        self.diverged = False

    def run(self) -> Outcome:
        """Run, or go on from the last checkpoint, to the end. Raises OutOfTime when late."""
        self.search = self.resumed()
        self.saved = time.monotonic()
        while not self.over:
            update, state = self.search.position
            self.search.see(self.trainer.advance(state, update, self.search.next_update))
            self.diverged = math.isinf(self.search.tests[-1].reading.loss)
            self.context.report(self.search.position[0] / self.spec.settings["limit"])
            self.checkpoint()
        return self.outcome()

    @property
    def over(self) -> bool:
        """Whether every threshold is crossed, the limit is reached, or the loss is infinite."""
        return self.search.done or self.diverged

    def checkpoint(self) -> None:
        """Write a checkpoint where one is due. Raises OutOfTime when late."""
        waited = time.monotonic() - self.saved > self.context.checkpoint_seconds
        if not self.search.at_rest or self.over or not (waited or self.context.late):
            return
        update, state = self.search.position
        values = {
            "update": update,
            "seconds": self.trainer.seconds,
            "crossed": {m.name: sorted(m.crossed.items()) for m in self.search.monitors},
            "tests": [[t.monitor, t.update, *t.reading] for t in self.search.tests],
        }
        looked = {f"looked/{name}": losses for name, losses in self.trainer.looked.items()}
        checkpoint.save(self.context.folder, state, values, looked)
        self.saved = time.monotonic()
        if self.context.late:
            raise OutOfTime

    def resumed(self) -> Search:
        """The search from its last checkpoint, or a new one."""
        settings, trainer = self.spec.settings, self.trainer
        thresholds, state = sorted(settings["monitors"].items()), trainer.start()
        watched = [Monitor(name, trainer.reader(name), tuple(each)) for name, each in thresholds]
        grid = {name: settings[name] for name in ("growth", "every", "limit") if name in settings}
        found = checkpoint.load(self.context.folder, state, self.context.device)
        if found is None:
            return Search(watched, state, **grid)
        state, values, tensors = found
        update, trainer.seconds = values["update"], values["seconds"]
        for name, losses in trainer.looked.items():
            losses.copy_(tensors[f"looked/{name}"])
        for monitor in watched:
            monitor.crossed = dict(values["crossed"][monitor.name])
        search = Search(watched, state, **grid, update=update)
        search.tests = [Test(name, at, LossReading(*reading)) for name, at, *reading in values["tests"]]
        return search

    def outcome(self) -> Outcome:
        """``crossed_NAME`` holds the updates to each of ``thresholds_NAME``, -1 where censored."""
        trainer, search = self.trainer, self.search
        results: dict[str, Any] = {
            "updates": search.position[0],
            "update_seconds": trainer.seconds,
            "parameters": trainer.problem.d,
            "test_examples": trainer.test_examples,
        }
        for monitor in search.monitors:
            results[f"thresholds_{monitor.name}"] = list(monitor.thresholds)
            results[f"crossed_{monitor.name}"] = [monitor.crossed.get(t, -1) for t in monitor.thresholds]
        rows = [(t.monitor, t.update, t.reading.loss, t.reading.cut, t.reading.examples) for t in search.tests]
        tests = pd.DataFrame(rows, columns=["monitor", "update", "loss", "cut", "examples"])
        pending = any(m.pending for m in search.monitors)
        status = "diverged" if self.diverged else "out of budget" if pending else "finished"
        return Outcome(status, results | self.judge(search.position[1]), {"tests": tests})
