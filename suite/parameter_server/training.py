"""Training along a simulated server: the protocol decides the turns, the gradients are real.

One run gives error and virtual time. Settings are those of :mod:`suite.training.loop`, with ``updates`` counting
weight updates, and besides::

    server      what :mod:`suite.parameter_server.simulation` reads

Gradients that read the same weights and feed the same update are joined: their sum is what the update needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch

from reference_impls.contract import Turn
from reference_impls.numbers import on_device
from reference_impls.rudra_protocol import average_staleness
from suite.experiment import Context, Outcome
from suite.parameter_server.protocol import Timed
from suite.parameter_server.simulation import simulation
from suite.spec import RunSpec, seed
from suite.training.build import Setup
from suite.training.gradients.backend import Backend, Batch, compute_gradients
from suite.training.gradients.paths import seed_masks
from suite.training.loop import TrainingRun
from suite.training.numerics import apply

FETCHED = 64  # examples, of as many updates as they make


def train(spec: RunSpec, context: Context) -> Outcome:
    """Run or resume a specification. Divergence is an outcome, lateness raises OutOfTime."""
    apply(context.execution)
    return ServerRun(spec, context).run()


class ServerRun(TrainingRun):
    """A training run under way whose turns come from a server in virtual time."""

    def __init__(self, spec: RunSpec, context: Context, made: Setup | None = None, backend: Backend | None = None):
        super().__init__(spec, context, made, backend)
        if self.made.problem.q:
            raise ValueError(
                "a network with batch norm has statistics in every learner, which Rudra's learners do not exchange; "
                "choose one without"
            )
        settings = spec.settings
        self.server = simulation(
            settings["server"], self.workers, settings["algorithm"]["n"], settings["batch"], spec.seed
        )
        self.one_version = self.backend.server_step(self.algorithm)
        self.batches: dict[int, Batch] = {}  # by update
        self.virtual_seconds, self.examples, self.staleness = 0.0, 0, 0.0

    def turns(self) -> Iterator[Turn]:
        """The server's updates from the present one on."""
        schedule: Iterator[Timed] = islice(iter(self.server), self.t, None)
        for seconds, turn in self.fetched(schedule) if self.one_version else schedule:
            self.virtual_seconds = seconds
            yield turn

    def fetched(self, schedule: Iterator[Timed]) -> Iterator[Timed]:
        """The same schedule, with the batches of updates that read one version fetched some updates ahead.

        A few examples cost nearly as much to draw and decode as many.
        """
        most = max(1, FETCHED // (self.made.order.batch * self.server.server.collect))
        while timed := list(islice(schedule, most)):
            ours = [turn for _, turn in timed if len({entry.read for entry in turn.entries}) == 1]
            if ours:
                self.fetch(ours)
            yield from timed

    def fetch(self, turns: list[Turn]) -> None:
        """Draw and decode the batches of turns."""
        order = self.made.order
        entries = [entry for turn in turns for entry in turn.entries]
        numbers = torch.tensor([entry.number for entry in entries])
        examples = order.indices(numbers, torch.tensor([entry.worker for entry in entries]))
        inputs, targets = self.made.problem.fetch(examples.view(-1))
        end = 0
        for turn in turns:
            start, end = end, end + len(turn.entries) * order.batch
            self.batches[turn.t] = inputs[start:end], targets[start:end]

    def update(self, turn: Turn) -> None:
        """Apply one update of the server."""
        loss = self.at_once(turn) if turn.t in self.batches else self.applied(turn)
        average = average_staleness(turn)
        self.staleness += average * len(turn.entries)
        self.examples += len(turn.entries) * self.made.order.batch
        if self.recorder.wants(turn.t):
            staleness = on_device([average], self.made.x0.device, torch.float32)[0]
            self.recorder.add(turn.t, {"loss": torch.as_tensor(loss), "staleness": staleness})
        self.t = turn.t + 1

    def at_once(self, turn: Turn) -> float:
        """Gradient and update in one step. Gives the loss (nats)."""
        assert self.one_version is not None
        if self.made.problem.dropout:
            seed_masks(seed(self.spec.seed, "dropout", turn.t, 1), self.made.x0.device)
        batch, lr = self.batches.pop(turn.t), self.rate(turn.t).item()
        self.state, loss = self.one_version(turn, self.state, batch, lr)
        return loss

    def applied(self, turn: Turn) -> torch.Tensor:
        """The update along the gradients of a turn. Gives their mean loss (0-d)."""
        made = self.made
        by_weights = Turn(turn.t, tuple(sorted(turn.entries, key=lambda entry: entry.read)))
        points = self.algorithm.points(self.state, by_weights)
        workers = on_device([entry.worker for entry in by_weights.entries], points.batch.device)
        if made.problem.dropout:
            seed_masks(seed(self.spec.seed, "dropout", turn.t, len(points.shares)), made.x0.device)
        none = self.buffers.new_empty(len(points.batch), 0)  # gradients, of which there may be more than learners
        examples = made.order.indices(points.batch, workers)
        losses, sums, _ = compute_gradients(self.backend, points, none, examples)
        self.state = self.algorithm.update(self.state, turn, losses, sums, self.rate(turn.t))
        return losses.mean()

    def position(self) -> dict[str, float]:
        """Where the run stands: virtual time and epochs beside updates and real seconds."""
        epoch = self.examples / len(self.made.problem.targets)
        return {**super().position(), "virtual_seconds": self.virtual_seconds, "epoch": epoch}

    def values(self) -> dict[str, Any]:
        return {
            **super().values(),
            "virtual_seconds": self.virtual_seconds,
            "examples": self.examples,
            "staleness": self.staleness,
        }

    def restore(self, values: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        super().restore(values, tensors)
        self.virtual_seconds, self.examples = values["virtual_seconds"], values["examples"]
        self.staleness = values["staleness"]

    def outcome(self) -> Outcome:
        made = super().outcome()
        gradients = max(1, self.examples // self.made.order.batch)
        results = {**made.results, "mean_staleness": self.staleness / gradients, "gradients": gradients}
        return Outcome(made.status, results, made.curves)
