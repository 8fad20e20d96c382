"""Runs that share a network and a batch shape: computed together, stored apart.

Seeds, rates and orders may differ inside a pack. Each run keeps its own state, checkpoint and outcome; only the
gradients of a step are one call. A pack has a fixed width, and each run a fixed slot in it, both recorded with the
run: a slot whose run has ended (or is resumed elsewhere) is computed with what it held last and thrown away, so
what the others get does not depend on it, to the bit.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from suite.experiment import Context, Experiment
from suite.runs.run import Outcome
from suite.spec import RunSpec

if TYPE_CHECKING:
    from torch import Tensor

    from reference_impls.contract import Points, Turn
    from suite.training.gradients.backend import GradientWork, Rows
    from suite.training.gradients.looped import Vectorised
    from suite.training.loop import TrainingRun

NOT_BEGUN = "not begun"  # status of a run that is late before anything of it was computed
# Of executions whose runs may share a step
ALIKE = ("path", "width", "threads", "precision", "device", "channels_last", "deterministic")
WIDEST = 16  # runs in a pack: memory grows with it, and so does what a dead worker takes along


@dataclass(frozen=True)
class RunReport:
    """What became of one run: stored, there already, busy elsewhere, out of time, or failed with a reason."""

    spec: RunSpec
    state: str  # "stored", "present", "busy", "late", "failed"
    status: str = ""
    why: str = ""


@dataclass(frozen=True)
class Pack:
    """Specifications handed to one worker process together."""

    specs: tuple[RunSpec, ...]

    @property
    def id(self) -> str:
        return self.specs[0].id


def packs(
    specs: Iterable[RunSpec],
    resolve: Callable[[str], Experiment],
    device: str,
    workers: int,
    stages: Mapping[str, int] | None = None,
) -> list[Pack]:
    """Group what may be computed together, in equal parts for ``workers`` processes; the largest group first.

    ``stages`` (by run id) come one after another instead, and runs of different stages share no step.
    """
    order = stages or {}
    groups: dict[Hashable, list[RunSpec]] = {}
    cost: dict[str, float] = {}
    for spec in specs:
        experiment = resolve(spec.experiment)
        key = experiment.pack(spec, device)
        shared = spec.id if key is None else (order.get(spec.id), spec.experiment, key)
        groups.setdefault(shared, []).append(spec)
        cost[spec.id] = experiment.seconds(spec)
    made = []
    for members in groups.values():
        members.sort(key=lambda s: (-cost[s.id], s.id))
        parts = max(min(workers, len(members)), -(-len(members) // WIDEST))
        made += [Pack(tuple(members[part::parts])) for part in range(parts)]
    return sorted(made, key=lambda p: (order.get(p.id, 0), -sum(cost[s.id] for s in p.specs), p.id))


class PackMember(Protocol):
    """What can share its steps with others: a training session, or a search.

    Each names the points and examples of its next gradients, is handed what they came to, and says when it is over.
    """

    @property
    def buffers(self) -> Tensor: ...  # [workers, q]
    @property
    def problem(self) -> Any: ...
    @property
    def over(self) -> bool: ...
    def begin(self) -> None: ...
    def share_steps(self) -> None: ...
    def charge(self, seconds: float) -> None: ...
    def turns(self) -> Iterator[Turn]: ...
    def request(self, turn: Turn) -> tuple[Points, Tensor]: ...
    def apply_gradients(self, turn: Turn, losses: Tensor, sums: Tensor, buffers: Tensor) -> None: ...
    def close_turn(self) -> None: ...
    def outcome(self) -> Outcome: ...


Build = Callable[[RunSpec, Context, Any], PackMember]  # the last: the first run of the pack that stands, or None


def train_together(runs: Sequence[tuple[RunSpec, Context]]) -> Iterator[tuple[int, Outcome | Exception]]:
    """Training sessions whose executions name a pack; see :func:`run_together`."""
    yield from run_together(runs, training_session)


def training_session(spec: RunSpec, context: Context, first: TrainingRun | None) -> TrainingRun:
    """A session that shares the pictures of ``first``."""
    from suite.training.loop import TrainingRun

    run = TrainingRun(spec, context)
    if first is not None and run.problem.share(first.problem):
        run.made.test_inputs, run.made.test_targets = first.made.test_inputs, first.made.test_targets
    return run


def run_together(runs: Sequence[tuple[RunSpec, Context]], build: Build) -> Iterator[tuple[int, Outcome | Exception]]:
    """Runs whose executions name a pack. Yields (place in ``runs``, outcome or what went wrong) as they end."""
    groups: dict[Hashable, dict[int, int]] = {}  # slot -> place, of each set of runs that fit together
    seen: Counter[Hashable] = Counter()
    for place, (_, context) in enumerate(runs):
        *shape, slot = (context.execution[name] for name in (*ALIKE, "slot"))
        group = (*shape, seen[*shape, slot])  # a slot that is taken begins another group
        seen[*shape, slot] += 1
        groups.setdefault(group, {})[slot] = place
    for members in groups.values():
        yield from _together(runs, members, build)


def _together(
    runs: Sequence[tuple[RunSpec, Context]], group: Mapping[int, int], build: Build
) -> Iterator[tuple[int, Outcome | Exception]]:
    from suite.training.numerics import apply

    made: dict[int, PackMember] = {}
    for slot, place in sorted(group.items()):
        spec, context = runs[place]
        try:
            apply(context.execution)
            made[slot] = build(spec, context, next(iter(made.values()), None))
        except Exception as error:  # the other runs go on
            yield place, error
    if made:
        width = runs[next(iter(group.values()))][1].execution["width"]
        for slot, ended in Lockstep(made, width).run():
            yield group[slot], ended


class Lockstep:
    """Runs whose gradients are computed in one vectorised call, a turn of each at a time.

    They need not stand at the same turn. Raises ValueError when a slot lies outside the width, or the network
    has dropout.
    """

    def __init__(self, sessions: Mapping[int, PackMember], width: int):
        from suite.training.gradients.looped import Vectorised

        if not sessions or not all(0 <= slot < width for slot in sessions):
            raise ValueError(f"slots {sorted(sessions)} must lie in 0..{width - 1}, the width of the pack")
        self.live, self.width = dict(sessions), width
        self.problem = next(iter(sessions.values())).problem
        self.gradients = Vectorised.of_run(self.problem)
        self.seats: dict[tuple[int, int], Seats] = {}  # by rows and examples of one run

    def run(self) -> Iterator[tuple[int, Outcome | Exception]]:
        """Run all to their ends. Yields (slot, outcome or what went wrong)."""
        turns: dict[int, Any] = {}
        for slot, session in list(self.live.items()):
            try:
                session.begin()
                session.share_steps()
                turns[slot] = iter(session.turns())
            except Exception as error:
                yield self.drop(slot, error)
        while self.live:
            for slot, session in list(self.live.items()):
                if session.over:
                    yield self.drop(slot, session.outcome())
            began = time.perf_counter()
            failed = self.step({slot: next(turns[slot]) for slot in self.live})
            share = (time.perf_counter() - began) / max(1, len(self.live))
            for slot, session in list(self.live.items()):
                session.charge(share)
                try:
                    if slot in failed:
                        raise failed[slot]
                    session.close_turn()
                except Exception as error:  # OutOfTime among them
                    yield self.drop(slot, error)

    def drop(self, slot: int, ended: Outcome | Exception) -> tuple[int, Outcome | Exception]:
        """Take a session out; its slot is computed on, so that the others keep their bits."""
        del self.live[slot]
        return slot, ended

    def step(self, turns: Mapping[int, Any]) -> dict[int, Exception]:
        """One turn of every live session; returns what went wrong, by slot."""
        from suite.training.gradients.backend import join_batches, split_results

        asked, failed = {}, {}
        shapes: dict[tuple[int, int], dict[int, GradientWork]] = {}
        for slot, turn in turns.items():
            session = self.live[slot]
            try:
                points, examples = session.request(turn)
                work = join_batches(self.problem, points, session.buffers, examples)
                asked[slot] = points, work
                shapes.setdefault((len(work.parameters), len(work.examples[0])), {})[slot] = work
            except Exception as error:
                failed[slot] = error
        for shape, works in shapes.items():
            if shape not in self.seats:
                self.seats[shape] = Seats(self.width, *shape, next(iter(works.values())))
            for slot, rows in self.seats[shape].compute(self.gradients, works).items():
                session, (points, work) = self.live[slot], asked[slot]
                try:
                    session.apply_gradients(turns[slot], *split_results(points, work, session.buffers, rows))
                except Exception as error:
                    failed[slot] = error
        return failed


class Seats:
    """The tensors of a joint call: ``rows`` points and index vectors of ``examples`` for each of ``width`` runs."""

    def __init__(self, width: int, rows: int, examples: int, like: GradientWork):
        self.rows = rows
        self.points = like.parameters.new_zeros(width * rows, like.parameters.shape[1])
        self.buffers = like.buffers.repeat(width, 1)
        self.examples = like.examples[0].new_zeros(width * rows, examples)

    def compute(self, gradients: Vectorised, works: Mapping[int, GradientWork]) -> dict[int, Rows]:
        """Losses [r], gradients [r, d] and buffers [r, q] of each run, by slot."""
        import torch

        for slot, work in works.items():
            mine = self.place(slot)
            self.points[mine] = work.parameters
            self.buffers[mine] = work.buffers
            self.examples[mine] = torch.stack(tuple(work.examples))
        batch: tuple[Tensor, ...] = tuple(
            part.unflatten(0, self.examples.shape) for part in gradients.problem.fetch(self.examples.reshape(-1))
        )
        losses, grads, after = gradients.stacked(self.points, self.buffers, batch)
        return {slot: (losses[mine], grads[mine], after[mine]) for slot in works for mine in (self.place(slot),)}

    def place(self, slot: int) -> slice:
        return slice(slot * self.rows, (slot + 1) * self.rows)
