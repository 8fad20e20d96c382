"""The experiments on Algorithm 1 itself: ``crossbow/algebra`` and ``crossbow/followed``.

``crossbow/algebra`` runs it on quadratics in float64, for Figs. 1 and 4 to 6. ``crossbow/followed`` trains by it and
evaluates every replica beside the average model, growing if asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from reference_impls import crossbow
from reference_impls.contract import Collective, GradientRef, Turn
from reference_impls.crossbow import SMA
from suite.communication.collectives import CompletedSum, Local
from suite.data.order import Shuffled
from suite.experiment import Context, Outcome, OutOfTime
from suite.model_averaging.engine import Learners
from suite.runner.autotune import measure_training
from suite.spec import RunSpec, seed
from suite.training import checkpoint
from suite.training.build import Setup, assemble
from suite.training.evaluation import score
from suite.training.gradients.backend import Functional
from suite.training.gradients.paths import backend_of, seed_masks
from suite.training.numerics import apply
from suite.training.optimizers import CaffeSGD
from suite.training.problem import QuadraticProblem

Gradient = Callable[[Tensor, int], Tensor]  # points [k, d], iteration -> gradients [k, d]
Found = dict[str, float | list[float]]  # results by name
D, EXAMPLES, BATCH = 40, 480, 4
RATE = torch.tensor(0.05, dtype=torch.float64)


@dataclass(frozen=True)
class CountingSum(Local):
    """A sum over replicas that counts the numbers each device hands over."""

    devices: int
    sent: list[int] = field(default_factory=list)

    def start(self, rows: Tensor, each: int | None = None) -> CompletedSum:
        self.sent.append(rows.numel() // self.devices)
        return super().start(rows, each)


def problem(run_seed: int) -> Any:
    """A quadratic whose batches differ."""
    draw = torch.Generator().manual_seed(seed(run_seed, "quadratic"))
    rows = torch.randn(EXAMPLES, D, generator=draw, dtype=torch.float64)
    return QuadraticProblem(rows, torch.linspace(0.2, 1.5, D, dtype=torch.float64))


def noisy(made: QuadraticProblem, k: int) -> Gradient:
    """Learner j of iteration t reads batch t * k + j."""
    table = torch.arange(len(made.rows)).view(-1, BATCH)

    def gradient(points: Tensor, t: int) -> Tensor:
        means = torch.stack([made.rows[table[(t * k + j) % len(table)]].mean(0) for j in range(k)])
        return made.curvature * (points - means)

    return gradient


def sma(k: int, collective: Collective | None = None, **settings: Any) -> SMA:
    """Averaging of k learners that take plain gradient steps."""
    return SMA(CaffeSGD(), collective or Local(k), **settings)


def walk(
    algorithm: SMA,
    start: Tensor,
    turns: int,
    gradient: Gradient,
    rate: Tensor = RATE,
) -> list[crossbow.SMAState]:
    """The states of SMA, the initial one first."""
    k = algorithm.collective.rows
    states = [algorithm.init(start)]
    for t in range(turns):
        turn = Turn(t, tuple(GradientRef(j, t, t * k + j) for j in range(k)))
        points, losses = algorithm.points(states[-1], turn).parameters, torch.zeros(k, dtype=torch.float64)
        states.append(algorithm.update(states[-1], turn, losses, gradient(points, t), rate))
    return states


def stability(k: int, alpha: float, momentum: float, turns: int = 4000) -> float:
    """Largest stable rate times curvature of k equal learners: every coordinate is its own quadratic."""
    grid = torch.linspace(0.0025, 2.4975, 500, dtype=torch.float64)
    one = torch.tensor(1.0, dtype=torch.float64)
    algorithm = sma(k, alpha=alpha, momentum=momentum)
    ends = walk(algorithm, torch.ones_like(grid), turns, lambda points, t: grid * points, rate=one)
    size = ends[-1].replicas[0].abs() + ends[-1].centre.abs()
    stable = size < 1.0  # a NaN or an infinity is not
    return float(grid[stable].max()) if stable.any() else 0.0


def algebra(spec: RunSpec, context: Context) -> Outcome:
    """What the figures of the algorithm show; one named number (or list) each."""
    torch.set_num_threads(context.execution["threads"])
    made = problem(spec.seed)
    start = torch.ones(D, dtype=torch.float64)
    # The largest stable rates of one learner, which alpha = 1 makes unstable, and of two and four.
    results: Found = {
        "one_learner_limits": [stability(1, 1.0, 0.0, turns=8000), stability(1, 1.0, 0.9)],
        "many_learner_limits": [stability(2, 0.5, 0.0), stability(4, 0.25, 0.0)],
    }
    context.report(0.4)
    results |= replicas_and_centre(made, start, spec.seed)
    context.report(0.7)
    results |= devices(made, start)
    results |= synchronous(made, start)
    return Outcome("finished", results, {"paths": paths()})


def paths() -> pd.DataFrame:
    """Two replicas and their average model over 40 iterations in a plane, batches drawn around the minimum."""
    made = QuadraticProblem(
        torch.randn(400, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64) * 1.5,
        torch.tensor([0.3, 1.0], dtype=torch.float64),
    )

    start = torch.tensor([-6.0, 4.0], dtype=torch.float64)
    rows = []
    for t, state in enumerate(walk(sma(2), start, 40, noisy(made, 2), rate=2 * RATE)):
        models = {"average": state.centre, "replica 1": state.replicas[0], "replica 2": state.replicas[1]}
        rows += [{"turn": t, "model": name, "x": float(p[0]), "y": float(p[1])} for name, p in models.items()]
    return pd.DataFrame(rows)


def replicas_and_centre(made: Any, start: Tensor, run_seed: int) -> Found:
    """Batches and distances of a run through :class:`suite.model_averaging.engine.Learners`."""
    k = 4
    order = Shuffled(EXAMPLES, BATCH, seed(run_seed, "order"))
    read: list[Tensor] = []

    def examples(numbers: Tensor) -> Tensor:
        read.append(order.indices(numbers))
        return read[-1]

    learners = Learners(sma(k), start, Functional(made), examples)
    distances = []
    for _ in range(order.batches_per_epoch // k):
        learners.step(RATE)
        w = learners.state.replicas
        distances.append(float(torch.pdist(w).min()))
    everything = torch.cat([rows.flatten() for rows in read])
    shared = [rows.numel() - rows.unique().numel() for rows in read]
    return {
        "shared_in_iteration": float(max(shared)),
        "shared_in_epoch": float(everything.numel() - everything.unique().numel()),
        "batches_per_learner": learners.taken / (k * learners.t),
        "least_distance": min(distances),
    }


def devices(made: QuadraticProblem, start: Tensor) -> Found:
    """Numbers that a device of two sends with 1, 2 and 4 learners, on two levels (section 3.3) and flat."""

    def sent(m: int, **settings: Any) -> float:
        counted = CountingSum(2 * m, 2)
        walk(sma(2 * m, counted, **settings), start, 1, noisy(made, 2 * m))
        return float(counted.sent[0])

    def references(m: int) -> float:
        _, to_centre = sma(2 * m, CountingSum(2 * m, 2), devices=2).corrections(start.new_zeros(2 * m, D), start)
        return len(to_centre) / 2

    learners = (1, 2, 4)
    return {
        "traffic": [sent(m, devices=2) / sent(1, devices=2) for m in learners],
        "references": [references(m) for m in learners],
        "flat_traffic": [sent(m) / sent(1) for m in learners],
    }


def synchronous(made: Any, start: Tensor) -> Found:
    """Parallel synchronous SGD (Fig. 1)."""
    optimizer = CaffeSGD(momentum=0.9)
    loss_gradient = Functional(made)
    rows = torch.arange(16)
    buffers = made.b0()
    whole = loss_gradient(start[None], buffers[None], [made.fetch(rows)])[1][0]
    batches = [made.fetch(half) for half in rows.split(8)]
    halves = loss_gradient(start.expand(2, -1), buffers.expand(2, -1), batches)[1]
    copies, memories = start.expand(2, -1).clone(), torch.zeros(2, D, dtype=torch.float64)
    two = noisy(made, 2)
    for t in range(40):  # each worker applies the averaged gradient to its own copy
        mean = Local(2).sum(two(copies, t)) / 2
        for j in range(2):
            copies[j], memories[j] = optimizer.step(memories[j], copies[j], mean, RATE)
    return {
        "partial_gradients": float((halves.mean(0) - whole).abs().max()),
        "synchronous_copies": float((copies[0] - copies[1]).abs().max()),
    }


def choose_path(spec: RunSpec, execution: Mapping[str, Any]) -> dict[str, Any]:
    """On a GPU the fastest path of the most learners there will be; on a CPU they are taken one after another."""
    if execution["device"] == "cpu":
        return {"reason": "learners share a CPU one after another"}
    most = max(count for _, count in spec.settings["learners"])
    return measure_training(RunSpec(spec.experiment, {**spec.settings, "workers": most}), execution)


def followed(spec: RunSpec, context: Context) -> Outcome:
    """Train for ``epochs`` epochs of ``images`` images; ``learners`` lists [turns, count] changes.

    A change takes effect once ``turns * 4 * batch`` examples are read. The table ``models`` holds the test error of
    the average model and the mean and least test error of the replicas after every epoch. A run that was
    interrupted goes on from its checkpoint to the same bits.
    """
    apply(context.execution)
    settings = dict(spec.settings)
    images, epochs, schedule = settings.pop("images"), settings.pop("epochs"), settings.pop("learners")
    made = assemble(settings, spec.seed, context.execution, context.data)
    if not isinstance(made.algorithm, SMA):
        raise ValueError(f"replicas are followed beside their average, which {type(made.algorithm).__name__} has not")
    algorithm = replace(made.algorithm, collective=Local(schedule[0][1]))
    gradients = backend_of(context.execution, made.problem)
    learners = Learners(algorithm, made.x0, gradients, made.order.indices)
    rate = torch.tensor(settings["rate"], device=made.x0.device, dtype=made.x0.dtype)
    per_epoch = images // settings["batch"]  # batches
    changes = [(4 * turns, count) for turns, count in schedule[1:]]
    rows: list[dict[str, Any]] = []
    if found := checkpoint.load(context.folder, learners.state, context.device):
        state, values, tensors = found
        learners.take_up(state, tensors["buffers"], values["t"], values["taken"])
        rows, changes = values["rows"], changes[len(changes) - values["changes"] :]
    saved = time.monotonic()
    for epoch in range(len(rows) + 1, epochs + 1):
        while learners.taken + learners.k <= epoch * per_epoch:
            if changes and learners.taken >= changes[0][0]:
                learners.resize(changes.pop(0)[1])
            if made.problem.dropout:
                seed_masks(seed(spec.seed, "dropout", learners.t), made.x0.device)
            learners.step(rate)
            if context.late or time.monotonic() - saved > context.checkpoint_seconds:
                values = {"t": learners.t, "taken": learners.taken, "rows": rows, "changes": len(changes)}
                checkpoint.save(context.folder, learners.state, values, {"buffers": learners.buffers})
                saved = time.monotonic()
            if context.late:
                raise OutOfTime
        rows.append({"epoch": epoch, "learners": learners.k} | errors_of(made, learners))
        context.report(epoch / epochs)
    finite = bool(torch.isfinite(learners.centre).all())
    return Outcome("finished" if finite else "diverged", rows[-1], {"models": pd.DataFrame(rows)})


def errors_of(made: Setup, learners: Learners) -> dict[str, float]:
    """Of the average model, whose buffers are the replicas' mean, and of the replicas, on average and at best."""

    def error(point: Tensor, buffers: Tensor) -> float:
        return score(made.problem, point, buffers, made.test_inputs, made.test_targets)[1]

    centre = error(learners.centre, learners.buffers.mean(0))
    replicas = [error(*each) for each in zip(learners.state.replicas, learners.buffers, strict=True)]
    return {
        "centre_error": centre,
        "replica_error": sum(replicas) / len(replicas),
        "best_replica_error": min(replicas),
    }
