"""Training along a simulated server: the protocol decides the turns, the gradients are real.

One run gives error and virtual time. Settings are those of :mod:`suite.training.loop`, with ``updates`` counting
weight updates, and besides::

    server      what :mod:`suite.parameter_server.placement` reads
    lookahead   updates looked at beyond the next when waves of gradients are formed (default 0)

Waves: along a schedule known ahead, every gradient that is already determined is computed in one call.

A gradient is determined once the weights it reads exist. Under asynchronous protocols the schedule of the next
updates is known long before their values, so gradients of several future updates can share a call. Gradients that
read the same weights and feed the same update are one job: their batches are joined and their sum is what the
update needs, which is exact unless batch norm couples the examples of a batch (such networks are never joined).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch

from reference_impls.contract import GradientRef, Points, Turn
from reference_impls.numbers import on_device
from reference_impls.rudra_protocol import average_staleness
from suite.experiment import Context
from suite.parameter_server.placement import simulation
from suite.parameter_server.protocol import Timed
from suite.runs.run import Outcome
from suite.spec import RunSpec, seed
from suite.training.build import Setup
from suite.training.gradients.backend import Backend, Batch, compute_gradients
from suite.training.gradients.paths import seed_masks
from suite.training.loop import TrainingRun
from suite.training.numerics import apply


class GradientJob(NamedTuple):
    """Gradients of one future update that read the same weights."""

    update: int
    read: int
    entries: tuple[GradientRef, ...]


Key = tuple[int, int]  # (update, read) of a job


def jobs_of(turn: Turn) -> list[GradientJob]:
    """The jobs of one update, oldest weights first."""
    groups: dict[int, list[GradientRef]] = {}
    for entry in turn.entries:
        groups.setdefault(entry.read, []).append(entry)
    return [GradientJob(turn.t, read, tuple(groups[read])) for read in sorted(groups)]


class Waves:
    """Iterates over a schedule as (jobs to compute now, virtual seconds, turn to apply).

    ``lookahead`` updates beyond the next are looked at; with 0 each update computes its own gradients. A wave is
    formed only when the next update lacks something, and then takes everything determined. ``ready`` holds the
    jobs handed out whose update has not come yet; give it to a new ``Waves`` to continue a schedule elsewhere.
    """

    def __init__(self, schedule: Iterable[Timed], lookahead: int = 0, ready: Iterable[Key] = ()):
        if lookahead < 0:
            raise ValueError(f"waves: lookahead={lookahead} must not be negative")
        self.schedule, self.lookahead = iter(schedule), lookahead
        self.ready: set[Key] = set(ready)
        self.window: deque[tuple[float, Turn, list[GradientJob]]] = deque()

    def _fill(self) -> None:
        while len(self.window) <= self.lookahead:
            timed = next(self.schedule, None)
            if timed is None:
                return
            self.window.append((*timed, jobs_of(timed[1])))

    def __iter__(self) -> Iterator[tuple[list[GradientJob], float, Turn]]:
        while True:
            self._fill()
            if not self.window:
                return
            seconds, turn, jobs = self.window.popleft()
            wave: list[GradientJob] = []
            if any((job.update, job.read) not in self.ready for job in jobs):
                found = [*jobs, *(job for _, _, later in self.window for job in later)]
                wave = [job for job in found if job.read <= turn.t and (job.update, job.read) not in self.ready]
                wave.sort(key=lambda job: (job.read, job.update))
                self.ready.update((job.update, job.read) for job in wave)
            self.ready.difference_update((job.update, job.read) for job in jobs)
            yield wave, seconds, turn


def wave_points(found: Points, wave: list[GradientJob]) -> Points:
    """One point per job, out of the points of a wave as one turn, of which there is one per timestamp."""
    shares = tuple(len(job.entries) for job in wave)
    reads = sorted({job.read for job in wave})
    if len(reads) == len(wave):
        return Points(found.parameters, shares, found.batch)
    place = {read: at for at, read in enumerate(reads)}
    rows = on_device([place[job.read] for job in wave], found.parameters.device)
    return Points(found.parameters[rows], shares, found.batch)


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
        self.ready: dict[Key, tuple[torch.Tensor, torch.Tensor]] = {}  # losses [n], sum of gradients [d]
        self.one_version = self.backend.server_step(self.algorithm)
        self.batches: dict[int, Batch] = {}  # by update
        self.virtual_seconds, self.examples, self.staleness = 0.0, 0, 0.0

    def turns(self) -> Iterator[Turn]:
        """The server's updates from the present one on, with the gradients that each wave determines."""
        schedule: Iterator[Timed] = islice(iter(self.server), self.t, None)
        lookahead = self.spec.settings.get("lookahead", 0)
        if self.one_version and not lookahead:
            schedule = self.fetched(schedule)
        for wave, seconds, turn in Waves(schedule, lookahead, self.ready):
            if wave and turn.t not in self.batches:
                self.compute(turn.t, wave)
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

    def compute(self, t: int, wave: list[Any]) -> None:
        """Losses and sums of gradients of a wave."""
        made = self.made
        together = Turn(t, tuple(entry for job in wave for entry in job.entries))
        points = wave_points(self.algorithm.points(self.state, together), wave)
        workers = on_device([entry.worker for entry in together.entries], points.batch.device)
        if made.problem.dropout:
            seed_masks(seed(self.spec.seed, "dropout", t, len(wave)), made.x0.device)
        none = self.buffers.new_empty(
            len(points.batch), 0
        )  # a wave has more or fewer gradients than there are learners
        losses, sums, _ = compute_gradients(self.backend, points, none, made.order.indices(points.batch, workers))
        if any(job.update != t for job in wave):
            losses, sums = losses.clone(), sums.clone()  # a path's results are valid until its next call only
        for job, loss, total in zip(wave, losses.split(points.shares), sums, strict=True):
            self.ready[job.update, job.read] = loss, total

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
        """The update of gradients that are ready. Gives the mean loss (0-d)."""
        found = [self.ready.pop((job.update, job.read)) for job in jobs_of(turn)]
        if len(found) == 1:
            losses, sums = found[0][0], found[0][1][None]
        else:
            losses, sums = torch.cat([loss for loss, _ in found]), torch.stack([total for _, total in found])
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
            "ready": [list(key) for key in self.ready],
        }

    def tensors(self) -> dict[str, torch.Tensor]:
        found = super().tensors()
        for (update, read), (losses, total) in self.ready.items():
            found |= {f"losses/{update}/{read}": losses, f"sum/{update}/{read}": total}
        return found

    def restore(self, values: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        super().restore(values, tensors)
        self.virtual_seconds, self.examples = values["virtual_seconds"], values["examples"]
        self.staleness = values["staleness"]
        self.ready = {
            (update, read): (tensors[f"losses/{update}/{read}"], tensors[f"sum/{update}/{read}"])
            for update, read in values["ready"]
        }

    def outcome(self) -> Outcome:
        made = super().outcome()
        gradients = max(1, self.examples // self.made.order.batch)
        results = {**made.results, "mean_staleness": self.staleness / gradients, "gradients": gradients}
        return Outcome(made.status, results, made.curves)
