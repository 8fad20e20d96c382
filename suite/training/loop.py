"""The experiment ``train``: one algorithm on one network and data set, from settings to curves.

Settings (plain values; the table of all is :data:`suite.training.settings.TRAINING`)::

    data       {name, transform, enlarge?, subset?, ...}  model      {name, ...options}
    algorithm  {name, ...its fields}                      descent    {rule, momentum, decay, multipliers?}
    rate, drops [[turn, factor], ...], restart?           batch, workers
    schedule   {name?, warmup, cosine, ...}               (optional: factors of the rate, see schedules.shape_at)
    order      {kind, share?}                             updates    turns: one gradient per worker each
    augment    {crop, margin?, flip?}                     (optional: random crops and flips of training images)
    evaluate   {every, test_examples?, train_examples?, recompute?}
    record     {every}                                    exchange   {name, ...} (optional: counts what is sent)
    stop       {metric, below, median?, after?}           (optional: ends the run, see below)
    warmstart  {updates, ...settings}                     (optional: the training before this one, see below)

``restart: true`` restarts the algorithm at every drop of the rate (Crossbow, section 3.2).
``warmstart`` names settings that take the place of the run's own in a training before it, of so many updates. That
has no stopping rule, drops or schedule unless it names them. Its last weights are the first of the run, whose solver
begins with no memory. Rudra's section 5.5 starts softsync under AdaGrad from one epoch of hardsync:
``{updates, algorithm: {n: 0}, descent: {rule: caffe, momentum: 0.9}, rate}``.
``data.enlarge`` is the height and width to which pictures are enlarged for the network.
Evaluations read all test images, or the first ``evaluate.test_examples`` of them.
``stop`` ends a run ``after`` (0) evaluations after the median of ``median`` (1) of them in a row fell below a bound.
An ``exchange`` adds a column ``sent`` to the evaluations: the bytes that each worker has handed to sums until then.
``evaluate.recompute`` evaluates with the batch-norm statistics of that many training images instead of the mean
of the workers' running statistics.

Batches are named by the algorithm, seeds by coordinates, so a run is a function of its specification: the
checkpoint holds state, buffers, position and curves, and a resumed run ends in the same bits.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from statistics import median
from typing import Any

import torch

from reference_impls.contract import GradientRef, Turn
from suite.clock import WallClock
from suite.communication.collectives import CountingCollective
from suite.experiment import Context, Outcome, OutOfTime
from suite.spec import RunSpec, seed, trainings
from suite.training import checkpoint
from suite.training.build import Setup, assemble
from suite.training.curves import CurveRecorder
from suite.training.gradients.backend import Backend, compute_gradients
from suite.training.gradients.paths import backend_of, seed_masks
from suite.training.numerics import apply, synchronise
from suite.training.optimizers import ALL, in_place
from suite.training.schedules import shape_at


def train(spec: RunSpec, context: Context) -> Outcome:
    """Run or resume a training specification. Divergence is an outcome, lateness raises OutOfTime."""
    apply(context.execution)
    return TrainingRun(spec, context).run()


def rounds(workers: int, *, start: int = 0) -> Iterator[Turn]:
    """Lockstep: at turn t every worker brings one gradient of the newest weights, of its own batch t."""
    for t in itertools.count(start):
        yield Turn(t, tuple(GradientRef(j, t, t) for j in range(workers)))


Test = Callable[[torch.Tensor, torch.Tensor], Mapping[str, float]]  # (parameters [d], buffers [q]) -> part of a row


class TrainingRun:
    """A training run under way.

    ``made`` is by default what its settings assemble, ``backend`` the one that its execution names.
    ``test`` scores a model, by default on test images and, if asked for, on the first training images. With ``joins``
    False every gradient is computed by itself, where those at one point could be that of one batch. ``turns`` is the
    schedule.
    """

    def __init__(
        self,
        spec: RunSpec,
        context: Context,
        made: Setup | None = None,
        backend: Backend | None = None,
        *,
        test: Test | None = None,
        joins: bool = True,
    ):
        made = made or assemble(spec.settings, spec.seed, context.execution, context.data)
        backend = backend or backend_of(context.execution, made.problem)
        self.spec, self.context, self.made, self.backend = spec, context, made, backend
        self.test, self.joins = test or self.on_images, joins
        settings: Mapping[str, Any] = spec.settings
        self.workers = settings.get("workers", 1)
        self.updates = settings["updates"]
        self.evaluate_every = settings["evaluate"]["every"]
        self.recorder = CurveRecorder(settings.get("record", {}).get("every", 1))
        self.algorithm = in_place(made.algorithm, made.x0.device)
        self.state = self.algorithm.init(made.x0)
        self.step = backend.step(self.algorithm)
        self.buffers = made.problem.b0().expand(self.workers, -1).clone()
        self.t, self.stopped, self.diverged = 0, False, False
        exchange = made.algorithm.collective
        self.exchange = exchange if isinstance(exchange, CountingCollective) else None  # counts what is sent
        self.members = torch.arange(self.workers, device=made.x0.device)
        self.on_device = lru_cache(partial(torch.tensor, dtype=made.x0.dtype, device=made.x0.device))
        self._synchronise = partial(synchronise, context.device)
        self.clock = WallClock(synchronise=self._synchronise)

    def run(self) -> Outcome:
        """Run, or go on from the last checkpoint, to the end."""
        self.begin()
        for turn in self.turns():
            if self.over:
                break
            self.update(turn)
            self.close_turn()
        return self.outcome()

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return self.t >= self.updates or self.stopped or self.diverged

    def begin(self) -> None:
        """Take up the last checkpoint, or evaluate the initial model: that of the warm start, if there is one."""
        self.resume()
        with self.clock.paused():
            if self.t == 0:
                if "warmstart" in self.spec.settings:
                    self.state = self.algorithm.init(self.warm_start())
                self.evaluate()
            else:
                self.report()
        self.saved = time.monotonic()

    def report(self) -> None:
        """Say which share of its updates the run has made."""
        self.context.report(self.t / self.updates)

    def warm_start(self) -> torch.Tensor:
        """The weights [d] that the training before this one ends with.

        It has other batches, and a folder of its own from which it goes on after a kill.
        """
        spec, _ = trainings(self.spec)
        folder = self.context.folder / "warmstart"
        folder.mkdir(exist_ok=True)
        session = type(self)(spec, replace(self.context, folder=folder, report=lambda fraction: None))
        session.run()
        session.save()
        return session.model().to(self.made.x0)

    def close_turn(self) -> None:
        """What follows an update: evaluation and checkpoint where they are due. Raises OutOfTime when late."""
        if self.t % self.evaluate_every == 0 or self.t == self.updates:
            with self.clock.paused():
                self.evaluate()
            self.report()
        if time.monotonic() - self.saved > self.context.checkpoint_seconds or self.context.late:
            with self.clock.paused():
                self.save()
            self.report()  # tests may be hours apart
            if self.context.late:
                raise OutOfTime

    def turns(self) -> Iterator[Turn]:
        """The updates from the present one on: lockstep rounds of all workers."""
        return rounds(self.workers, start=self.t)

    def position(self) -> dict[str, float]:
        """Where the run stands, for an evaluation row; with an exchange, the bytes that each worker has sent."""
        sent = {"sent": float(self.exchange.sent)} if self.exchange else {}
        return {"update": self.t, "seconds": self.clock.spent, **sent}

    def model(self) -> torch.Tensor:
        """The parameters [d] that are evaluated; sums that only a test needs do not count as sent."""
        sent = self.exchange.sent if self.exchange else 0
        x = self.algorithm.model(self.state)
        if self.exchange:
            self.exchange.sent = sent
        return x

    def update(self, turn: Turn) -> None:
        """One turn: gather the batches, compute the gradients, apply them."""
        made, settings = self.made, self.spec.settings
        if settings.get("restart") and any(at == turn.t for at, _ in settings.get("drops", ())):
            self.state = self.algorithm.restart(self.state)
        before, lr = self.state, self.rate(turn.t)
        points = self.algorithm.points(before, turn)
        if made.problem.dropout:
            seed_masks(seed(self.spec.seed, "dropout", turn.t), made.x0.device)
        examples = made.order.indices(points.batch, self.members)  # [n, b]
        if self.step is not None:
            self.state, self.buffers, seen = self.step(turn, points, before, self.buffers, examples, lr)
            self.recorder.add(turn.t, seen)
        else:
            losses, sums, self.buffers = compute_gradients(
                self.backend, points, self.buffers, examples, join=self.joins
            )
            sent = ((ALL, self.algorithm.send(sums)),) if self.algorithm.sends else ()
            self.state = self.algorithm.update(before, turn, losses, sums, lr, sent)
            if self.recorder.wants(turn.t):
                self.recorder.add(turn.t, {"loss": losses.mean(), **self.algorithm.observe(before, self.state)})
        self.t = turn.t + 1

    def rate(self, t: int) -> torch.Tensor:
        """Learning rate of turn t, by the last drop at or before it, as a cached 0-d tensor on the device."""
        settings, factor = self.spec.settings, 1.0
        for at, reached in settings.get("drops", ()):
            if t >= at:
                factor = reached
        value = settings["rate"] * factor
        if schedule := settings.get("schedule"):
            value *= shape_at(schedule, self.updates, t)
        return self.on_device(value)

    def evaluate(self) -> None:
        """Add an evaluation row: where the run stands, and the test of its model."""
        made, settings = self.made, self.spec.settings
        x = self.model()
        buffers = self.buffers.mean(0)
        if count := settings["evaluate"].get("recompute"):
            buffers = made.problem.recomputed_buffers(x, made.problem.inputs[:count])
        row = {**self.position(), **self.test(x, buffers)}
        self.recorder.evaluate(**row)
        self.recorder.settle()
        # Looked for on the evaluation grid alone: the moment at which a checkpoint falls must not change a run.
        self.diverged = not self.recorder.finite
        stop = settings.get("stop")
        self.stopped = stop is not None and answered(self.recorder.evaluations[stop["metric"]], stop)

    def on_images(self, x: torch.Tensor, buffers: torch.Tensor) -> dict[str, float]:
        """Loss and error on test images and, if asked for, the first training images."""
        made, chosen = self.made, self.spec.settings["evaluate"]
        count = chosen.get("test_examples")
        loss, error = self.backend.evaluate(x, buffers, made.test_inputs[:count], made.test_targets[:count])
        row = {"test_loss": loss, "test_error": error}
        if count := chosen.get("train_examples"):
            seen = made.problem.inputs[:count], made.problem.targets[:count]
            row["train_loss"], row["train_error"] = self.backend.evaluate(x, buffers, *seen)
        return row

    def values(self) -> dict[str, Any]:
        """The plain values of a checkpoint. A session that has more adds them, and takes them up in ``restore``."""
        return {
            "t": self.t,
            "seconds": self.clock.spent,
            "stopped": self.stopped,
            "diverged": self.diverged,
            "recorder": self.recorder.to_plain(),
            **({"sent": self.exchange.sent} if self.exchange else {}),
        }

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors of a checkpoint beside the algorithm's state."""
        return {"buffers": self.buffers, **self.recorder.tensors()}

    def restore(self, values: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        """Take up what ``values`` and ``tensors`` gave."""
        self.t, self.stopped, self.diverged = values["t"], values["stopped"], values["diverged"]
        self.clock = WallClock(values["seconds"], self._synchronise)
        if self.exchange:
            self.exchange.sent = values["sent"]
        self.buffers = tensors["buffers"]
        self.recorder.restore(values["recorder"], tensors)

    def save(self) -> None:
        """Write a checkpoint of everything that the next update depends on."""
        self.recorder.settle()
        checkpoint.save(self.context.folder, self.state, self.values(), self.tensors())
        self.saved = time.monotonic()

    def resume(self) -> None:
        """Take up the last checkpoint, if there is one."""
        found = checkpoint.load(self.context.folder, self.state, self.context.device)
        if found is not None:
            self.state, values, tensors = found
            self.restore(values, tensors)

    def outcome(self) -> Outcome:
        """Final numbers and curves. A run with a stopping rule that never held is *out of budget*."""
        last = {name: column[-1] for name, column in self.recorder.evaluations.items()}
        wanted = self.spec.settings.get("stop") is not None
        status = "diverged" if self.diverged else "out of budget" if wanted and not self.stopped else "finished"
        results: dict[str, Any] = {
            **last,
            "updates": self.t,
            "parameters": self.made.problem.d,
            **self.algorithm.summary(self.state),
            "weights_digest": weights_digest(self.model()),
        }
        return Outcome(status, results, self.recorder.tables())


def answered(values: Sequence[float], stop: Mapping[str, Any]) -> bool:
    """Whether a stopping rule holds for what a run's evaluations read, the last one included.

    Args:
        values: The rule's metric, one value per evaluation.
        stop: ``below``, and optionally ``median`` (1) and ``after`` (0), counted in evaluations.

    Returns:
        True where the median of the ``median`` evaluations that ended ``after`` evaluations ago is below ``below``.

    Example:
        >>> answered([0.9, 0.1, 0.3, 0.1, 0.5], {"below": 0.2, "median": 3, "after": 1})
        True
    """
    window, end = stop.get("median", 1), len(values) - stop.get("after", 0)
    return end >= window and median(values[end - window : end]) < stop["below"]


def weights_digest(x: torch.Tensor) -> str:
    """SHA-256 of the bytes of a parameter vector: two runs with equal digests ended in equal bits."""
    return hashlib.sha256(x.detach().cpu().contiguous().numpy().tobytes()).hexdigest()[:16]
