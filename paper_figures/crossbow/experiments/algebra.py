"""The experiment ``crossbow/algebra``: what follows from Algorithm 1 alone, computed in float64.

Every number is the outcome of running :mod:`reference_impls.crossbow` beside the rule written out another way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from reference_impls import crossbow
from reference_impls.contract import Collective, GradientRef, Turn
from reference_impls.crossbow import SMA
from suite.communication.collectives import CompletedSum, Local, check_rows
from suite.data.order import Shuffled
from suite.experiment import Context
from suite.model_averaging.learners import Learners
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.gradients.looped import Functional
from suite.training.optimizers import CaffeSGD
from suite.training.problem import QuadraticProblem

Gradient = Callable[[Tensor, int], Tensor]  # points [k, d], iteration -> gradients [k, d]
D, EXAMPLES, BATCH = 40, 480, 4
RATE = torch.tensor(0.05, dtype=torch.float64)


@dataclass
class CountingSum:
    """A sum over replicas that counts the numbers each device hands over."""

    workers: int
    devices: int
    sent: list[int] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return self.workers

    def start(self, rows: Tensor, each: int | None = None) -> CompletedSum:
        return CompletedSum(self.sum(rows, each))

    def sum(self, rows: Tensor, each: int | None = None) -> Tensor:
        check_rows(rows, self.workers, each)
        self.sent.append(rows.numel() // self.devices)
        return rows.sum(0)


@dataclass
class Meeting:
    """Where the devices of a run, a thread each, put down their sums and wait for those of the others."""

    devices: int

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(self.devices, timeout=60)
        self.sums = [torch.empty(0)] * self.devices


@dataclass
class DeviceSum:
    """A sum over the replicas of one device, then over the devices (section 4.2)."""

    meeting: Meeting
    device: int
    rows: int

    @property
    def workers(self) -> int:
        return self.rows * self.meeting.devices

    def start(self, rows: Tensor, each: int | None = None) -> CompletedSum:
        return CompletedSum(self.sum(rows, each))

    def sum(self, rows: Tensor, each: int | None = None) -> Tensor:
        check_rows(rows, self.rows, each)
        self.meeting.sums[self.device] = rows.sum(0)
        self.meeting.barrier.wait()
        total = torch.stack(self.meeting.sums).sum(0)
        self.meeting.barrier.wait()  # nobody puts down the next sum before all have read this one
        return total


def problem(run_seed: int) -> Any:
    """A quadratic whose batches differ."""
    draw = torch.Generator().manual_seed(seed(run_seed, "quadratic"))
    rows = torch.randn(EXAMPLES, D, generator=draw, dtype=torch.float64)
    return QuadraticProblem(rows, torch.linspace(0.2, 1.5, D, dtype=torch.float64))


def noisy(made: QuadraticProblem, k: int) -> Gradient:
    """Learner j of iteration t reads batch t * k + j."""
    table = torch.arange(EXAMPLES).view(-1, BATCH)

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
    *,
    rate: Tensor = RATE,
    state: crossbow.SMAState | None = None,
) -> list[crossbow.SMAState]:
    """The states of SMA, the initial one first."""
    k = algorithm.collective.rows
    states = [state or algorithm.init(start)]
    for t in range(turns):
        turn = Turn(t, tuple(GradientRef(j, t, t * k + j) for j in range(k)))
        points, losses = algorithm.points(states[-1], turn).parameters, torch.zeros(k, dtype=torch.float64)
        states.append(algorithm.update(states[-1], turn, losses, gradient(points, t), rate))
    return states


def written_out(k: int, start: Tensor, turns: int, gradient: Gradient) -> tuple[Tensor, Tensor]:
    """Algorithm 1 in plain lines, alpha = 1/k and momentum 0.9: replicas [k, d] and average model [d] at the end."""
    w, z, z_prev = start.expand(k, -1), start, start
    for t in range(turns):
        c = (w - z) / k
        w, z, z_prev = w - RATE * gradient(w, t) - c, z + c.sum(0) + 0.9 * (z - z_prev), z
    return w, z


def on_devices(k: int, devices: int, start: Tensor, turns: int, gradient: Gradient) -> list[crossbow.SMAState]:
    """The last state of each device: replicas of its own and a copy of the average model, sums exchanged."""
    meeting, m = Meeting(devices), k // devices

    def run(device: int) -> crossbow.SMAState:
        own = slice(device * m, (device + 1) * m)
        mine = lambda points, t: gradient(points.repeat(devices, 1), t)[own]  # row j is the gradient of learner j
        return walk(sma(m, DeviceSum(meeting, device, m)), start, turns, mine)[-1]

    with ThreadPoolExecutor(devices) as pool:
        return list(pool.map(run, range(devices)))


def apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())


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
    """All identities and limits; one named number (or list) each."""
    torch.set_num_threads(context.execution["threads"])
    made = problem(spec.seed)
    start = torch.ones(D, dtype=torch.float64)
    results: dict[str, float | list[float]] = {}
    results |= one_learner(made, start)
    context.report(0.4)
    results |= many_learners(made, start, spec.seed)
    results |= replicas_and_centre(made, start, spec.seed)
    context.report(0.7)
    results |= devices(made, start)
    results |= momentum_forms(made, start)
    return Outcome("finished", results, {"paths": paths()})


def paths() -> pd.DataFrame:
    """Two replicas and their average model over 40 iterations in a plane, batches drawn around the minimum."""
    made = QuadraticProblem(
        torch.randn(400, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64) * 1.5,
        torch.tensor([0.3, 1.0], dtype=torch.float64),
    )

    def gradient(points: Tensor, t: int) -> Tensor:
        return made.curvature * (
            points - torch.stack([made.rows[(2 * t + j) * 4 : (2 * t + j + 1) * 4].mean(0) for j in range(2)])
        )

    start = torch.tensor([-6.0, 4.0], dtype=torch.float64)
    rows = []
    for t, state in enumerate(walk(sma(2), start, 40, gradient, rate=2 * RATE)):
        models = {"average": state.centre, "replica 1": state.replicas[0], "replica 2": state.replicas[1]}
        rows += [{"turn": t, "model": name, "x": float(p[0]), "y": float(p[1])} for name, p in models.items()]
    return pd.DataFrame(rows)


def one_learner(made: QuadraticProblem, start: Tensor) -> dict[str, float | list[float]]:
    gradient = noisy(made, 1)
    states = walk(sma(1, alpha=1.0, momentum=0.0), start, 30, gradient)
    w = [state.replicas for state in states]
    gap = max(apart(w[t + 1], w[t - 1] - RATE * gradient(w[t], t)) for t in range(1, 30))
    alone = walk(sma(4, alpha=1.0, momentum=0.0, tau=0), start, 30, noisy(made, 4))
    sgd, four = start.expand(4, -1), noisy(made, 4)
    for t in range(30):
        sgd = sgd - RATE * four(sgd, t)
    return {
        "leapfrog": gap,
        "leapfrog_from_sgd": apart(w[2], start - RATE * gradient(w[0], 0) - RATE * gradient(w[1], 1)),
        "one_learner_limits": [stability(1, 1.0, 0.0, turns=8000), stability(1, 1.0, 0.9)],
        "many_learner_limits": [stability(2, 0.5, 0.0), stability(4, 0.25, 0.0)],
        "never_synchronised": apart(alone[-1].replicas, sgd),
    }


def lag_of_previous(states: list[crossbow.SMAState], i: int) -> int:
    """How many iterations before i the average model stood where ``previous`` of state i says."""
    return min(range(1, i + 1), key=lambda lag: apart(states[i].previous, states[i - lag].centre))


def many_learners(made: QuadraticProblem, start: Tensor, run_seed: int) -> dict[str, float | list[float]]:
    k, gradient = 4, noisy(made, 4)
    found: dict[str, float | list[float]] = {}
    states = walk(sma(k, momentum=0.0), start, 30, gradient)
    pairs = list(pairwise(states))
    found["mean_of_replicas"] = max(apart(b.centre, a.replicas.mean(0)) for a, b in pairs)
    total = [state.replicas.sum(0) + state.centre for state in states]
    moved = [total[t] - RATE * gradient(states[t].replicas, t).sum(0) for t in range(30)]
    found["sum_conserved"] = max(apart(a, b) for a, b in zip(total[1:], moved, strict=True))

    x, centre, alpha = start.expand(k, -1), start, 0.15  # Zhang et al., Eq. 4-5, tau = 1
    elastic = walk(crossbow.elastic_averaging(CaffeSGD(), Local(k), alpha), start, 30, gradient)
    for t in range(30):
        difference = x - centre
        x, centre = x - RATE * gradient(x, t) - alpha * difference, centre + alpha * difference.sum(0)
    found["elastic"] = max(apart(elastic[-1].replicas, x), apart(elastic[-1].centre, centre))

    algorithm = sma(k, momentum=0.9)
    states = walk(algorithm, start, 30, gradient)
    lags = [lag_of_previous(states, i) for i in range(2, 31)]
    found["previous_lag"] = [float(min(lags)), float(max(lags))]
    equal = walk(algorithm, start, 30, lambda points, t: noisy(made, 1)(points[:1], t).expand(k, -1))
    found["equal_data"] = apart(equal[-1].replicas, equal[-1].replicas[:1])
    turn = Turn(5, tuple(GradientRef(j, 5, j) for j in range(k)))
    asked = [algorithm.points(state, turn).parameters for state in states]
    found["present_position"] = sum(apart(p, s.replicas) == 0 for p, s in zip(asked, states, strict=True)) / len(
        states
    )
    pulls, alphas = [], []
    for learners in (2, 4, 8):
        draw = torch.Generator().manual_seed(seed(run_seed, "corrections", learners))
        w, z = torch.randn(learners, D, generator=draw, dtype=torch.float64), torch.zeros(D, dtype=torch.float64)
        c, _ = sma(learners, momentum=0.9).corrections(w, z)
        pulls.append(float(((w - c - z).norm(dim=1) / (w - z).norm(dim=1)).max()))
        alphas.append(float((c / (w - z)).mean()) * learners)
    found["pull"], found["alpha_times_k"] = max(pulls), alphas
    found["continues_at"] = [min(b for b in range(50) if crossbow.continues(False, b, n)) / n for n in (1, 4, 7)]
    found["stops_at_target"] = float(crossbow.continues(True, 100, 1))
    return found


def white_noise(noise_seed: int) -> Gradient:
    """Gradients of a unit quadratic with unit Gaussian noise."""
    draw = torch.Generator().manual_seed(noise_seed)
    return lambda points, t: points + torch.randn(points.shape, generator=draw, dtype=torch.float64)


def replicas_and_centre(made: Any, start: Tensor, run_seed: int) -> dict[str, float | list[float]]:
    """Batches, distances and variances of a run through :class:`suite.model_averaging.learners.Learners`."""
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
    found: dict[str, float | list[float]] = {
        "shared_in_iteration": float(max(shared)),
        "shared_in_epoch": float(everything.numel() - everything.unique().numel()),
        "batches_per_learner": learners.taken / (k * learners.t),
        "least_distance": min(distances),
    }
    before = learners.centre.clone()
    learners.resize(k + 2)
    found["newcomer"] = apart(learners.state.replicas[k:], before.expand(2, -1))
    learners.restart()
    anew = learners.state
    found["restart"] = max(apart(anew.replicas, before), apart(anew.centre, before), apart(anew.previous, before))
    in_code = sma(k, restarting="code")
    moving = walk(in_code, start, 20, noisy(made, k))[-1]
    found["restart_code"] = apart(in_code.restart(moving).replicas, moving.centre)

    draw = torch.Generator().manual_seed(seed(run_seed, "apart"))
    spread = torch.randn(k, D, generator=draw, dtype=torch.float64)
    state = sma(k).init(start)._replace(replicas=spread)
    settled = walk(sma(k), start, 2500, lambda points, t: made.curvature * points, state=state)[-1]
    found["agreement_start"] = apart(spread, spread.mean(0))
    found["agreement_end"] = apart(settled.replicas, settled.centre)
    replica, centre = [], []
    for repeat in range(8):
        white = white_noise(seed(run_seed, "variance", repeat))
        tail = walk(sma(k), torch.zeros(400, dtype=torch.float64), 400, white)[150::5]
        replica.append(float(torch.stack([s.replicas.square().mean() for s in tail]).mean()))
        centre.append(float(torch.stack([s.centre.square().mean() for s in tail]).mean()))
    found["replica_variance"], found["centre_variance"] = replica, centre
    return found


def devices(made: QuadraticProblem, start: Tensor) -> dict[str, float | list[float]]:
    """Two levels (section 3.3), and differences added up on each device first (section 4.2)."""
    found: dict[str, float | list[float]] = {}
    k, gradient = 4, noisy(made, 4)
    w, z = written_out(k, start, 50, gradient)
    staged = on_devices(k, 2, start, 50, gradient)
    gaps = [apart(torch.cat([state.replicas for state in staged]), w), *(apart(s.centre, z) for s in staged)]
    found["staged"] = max(gaps)

    gaps = []
    for learners, gpus in ((2, 2), (4, 4), (4, 1)):  # a GPU's only learner is its reference model; z is a lone GPU's
        w, z = written_out(learners, start, 50, noisy(made, learners))
        levels = walk(sma(learners, devices=gpus), start, 50, noisy(made, learners))[-1]
        gaps += [apart(levels.replicas, w), apart(levels.centre, z)]
    found["single_learner_devices"] = max(gaps)

    sent, references = [], []
    for m in (1, 2, 4):
        counted = CountingSum(2 * m, 2)
        algorithm = sma(2 * m, counted, devices=2)
        walk(algorithm, start, 3, noisy(made, 2 * m))
        sent.append(float(counted.sent[0]))
        _, to_centre = algorithm.corrections(torch.zeros(2 * m, D, dtype=torch.float64), start)
        references.append(len(to_centre) / 2)
    found["traffic"], found["references"] = [value / sent[0] for value in sent], references
    flat_sent = []
    for m in (1, 2, 4):
        counted = CountingSum(2 * m, 2)
        walk(sma(2 * m, counted), start, 1, noisy(made, 2 * m))
        flat_sent.append(float(counted.sent[0]))
    found["flat_traffic"] = [value / flat_sent[0] for value in flat_sent]
    return found


def momentum_forms(made: Any, start: Tensor) -> dict[str, float | list[float]]:
    """Eq. 1-3 and parallel synchronous SGD (Fig. 1)."""
    gradient, mu = noisy(made, 1), 0.9
    optimizer = CaffeSGD(momentum=mu)
    w, before, x, memory = start, start, start, optimizer.init(start)
    gaps = []
    for t in range(40):
        w, before = w - RATE * gradient(w[None], t)[0] + mu * (w - before), w
        x, memory = optimizer.step(memory, x, gradient(x[None], t)[0], RATE)
        gaps.append(apart(w, x))
    first, _ = optimizer.step(optimizer.init(start), start, gradient(start[None], 0)[0], RATE)
    loss_gradient = Functional(made)
    rows = torch.arange(16)
    buffers = made.b0()
    singles = torch.stack(
        [loss_gradient(start[None], buffers[None], [made.fetch(rows[i : i + 1])])[1][0] for i in rows]
    )
    whole = loss_gradient(start[None], buffers[None], [made.fetch(rows)])[1][0]
    halves = loss_gradient(start.expand(2, -1), buffers.expand(2, -1), [made.fetch(rows[:8]), made.fetch(rows[8:])])[
        1
    ]
    copies, memories = start.expand(2, -1).clone(), torch.zeros(2, D, dtype=torch.float64)
    two = noisy(made, 2)
    for t in range(40):  # each worker applies the averaged gradient to its own copy
        mean = Local(2).sum(two(copies, t)) / 2
        for j in range(2):
            copies[j], memories[j] = optimizer.step(memories[j], copies[j], mean, RATE)
    return {
        "two_forms": max(gaps),
        "first_step": apart(first, start - RATE * gradient(start[None], 0)[0]),
        "mean_gradient": apart(singles.mean(0), whole),
        "partial_gradients": apart(halves.mean(0), whole),
        "synchronous_copies": apart(copies[0], copies[1]),
    }
