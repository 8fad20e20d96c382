"""The experiment ``matex_agd/properties``: what sections 3 and 4 state about the algorithms, in one process.

Differences are the largest over all parameters, in float64 unless the name says float32.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor, nn

from paper_figures.matex_agd.experiments import backpropagation as backprop
from reference_impls.contract import Turn
from reference_impls.matex_agd import DelayedSGD
from suite.communication.collectives import CountingCollective, Local
from suite.data.order import FixedCycle, Partitioned, SplitBatch
from suite.experiment import Context
from suite.models import build, initialise
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.buckets import buckets
from suite.training.flat import FlatModule
from suite.training.optimizers import CaffeSGD
from suite.training.schedules import rounds

WORKERS, BATCH, UPDATES, RATE = 4, 32, 12, 0.01


class Trainer:
    """Caffe's LeNet on random images, its workers' gradients computed one after another."""

    def __init__(self, run_seed: int, dtype: torch.dtype = torch.float64, examples: int = 256):
        network = build("caffe_lenet")
        initialise(network, seed(run_seed, "weights"))
        self.flat = FlatModule(network.to(dtype))
        self.x0 = self.flat.point()
        draw = torch.Generator().manual_seed(seed(run_seed, "images"))
        self.inputs = torch.rand(examples, 1, 28, 28, generator=draw).to(dtype)
        self.targets = torch.randint(10, (examples,), generator=draw)
        self.joint = FixedCycle(examples, BATCH, seed(run_seed, "order"))
        self.optimizer = CaffeSGD(0.9, 5e-4)
        self.lr = torch.tensor(RATE, dtype=dtype)

    def gradient(self, x: Tensor, examples: Tensor) -> Tensor:
        self.flat.load(x)
        self.flat.grad.zero_()
        nn.functional.cross_entropy(self.flat.module(self.inputs[examples]), self.targets[examples]).backward()
        return self.flat.grad.clone()

    def run(self, workers: int, *, counted: CountingCollective | None = None, **settings: Any) -> list[Tensor]:
        """Weights [d] before the first update and after each, and after each drained exchange."""
        algorithm = DelayedSGD(self.optimizer, counted or Local(workers), **settings)
        order = SplitBatch(self.joint, workers)
        state = algorithm.init(self.x0)
        seen = [state.x]
        for turn in itertools.islice(rounds(workers), UPDATES):
            numbers = torch.tensor([entry.number for entry in turn.entries])
            rows = order.indices(numbers, torch.arange(workers))
            total = torch.stack([self.gradient(state.x, examples) for examples in rows]).sum(0)[None]
            parts = buckets(self.flat, 0) if algorithm.segmented else (slice(0, self.flat.d),)
            sent = tuple((part, algorithm.send(total[:, part])) for part in parts)
            state = algorithm.update(state, turn, torch.zeros(workers), total, self.lr, sent)
            seen.append(state.x)
        while algorithm.under_way(state):
            turn = Turn(turn.t + 1, ())
            state = algorithm.update(state, turn, torch.zeros(0), torch.zeros(0, self.flat.d), self.lr)
            seen.append(state.x)
        return seen


def apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())


def algorithm_1(run_seed: int) -> dict[str, Any]:
    """Gradients against differences, the order they come in, Eq. 1-2 with both signs, averaging in place."""
    layers = backprop.weights((6, 8, 7, 3), run_seed)
    draw = torch.Generator().manual_seed(seed(run_seed, "example"))
    examples = [
        (torch.randn(6, generator=draw).double(), torch.randn(3, generator=draw).double()) for _ in range(WORKERS)
    ]
    x, y = examples[0]
    found, ready = backprop.gradients(layers, x, y)
    before = backprop.cost(layers, x, y)
    base, gradient = backprop.flat(layers), backprop.flat(found)
    change = {
        sign: float(before - backprop.cost(backprop.shaped(base + factor * 1e-3 * gradient, layers), x, y))
        for sign, factor in (("plus", 1), ("minus", -1))
    }
    grid = torch.linspace(-5, 5, 1001, dtype=torch.float64)
    hooked: list[int] = []
    network = nn.Sequential(*(nn.Linear(5, 5) for _ in range(4)))
    for place, layer in enumerate(network.children()):
        weight: Any = layer.weight
        weight.register_post_accumulate_grad_hook(lambda _, place=place: hooked.append(place))
    network(torch.ones(1, 5)).sum().backward()
    return {
        "gradient check": apart(gradient, backprop.numerical(layers, x, y)),
        "relu": apart(torch.relu(grid), backprop.relu(grid)),
        "order of algorithm 1": ready,
        "order of autograd": hooked,
        "cost lowered by plus": change["plus"],
        "cost lowered by minus": change["minus"],
        "error on a copy": backprop.averaged_in_place(layers, examples, copy=True),
        "error in place": backprop.averaged_in_place(layers, examples, copy=False),
    }


def synchronous(run_seed: int) -> dict[str, Any]:
    """Synchronous against serial on the same joint batches, in both precisions, and one gradient."""
    exact, single = Trainer(run_seed), Trainer(run_seed, torch.float32)
    rows = exact.joint.indices(torch.tensor([0]))[0]
    parts = rows.view(WORKERS, -1)
    mean = torch.stack([exact.gradient(exact.x0, part) for part in parts]).mean(0)
    counted = CountingCollective(Local(WORKERS))
    ours, serial = exact.run(WORKERS, counted=counted), exact.run(1)
    ours32, serial32 = single.run(WORKERS), single.run(1)
    return {
        "gradient difference": apart(mean, exact.gradient(exact.x0, rows)),
        "serial difference": apart(ours[-1], serial[-1]),
        "drift float64": [apart(a, b) for a, b in zip(ours, serial, strict=True)],
        "drift float32": [apart(a, b) for a, b in zip(ours32, serial32, strict=True)],
        "moved": apart(serial[-1], serial[0]),
        "reductions per update": len(counted.sizes) / UPDATES,
        "numbers per reduction": counted.sizes[0] / exact.flat.d,
    }


def partition(examples: int = 50_000) -> dict[str, Any]:
    """Sizes of the workers' mini-batches and parts, and the examples two of them share, over one epoch."""
    order = Partitioned(examples, WORKERS, BATCH // WORKERS, 0)
    split = SplitBatch(FixedCycle(examples, BATCH, 0), WORKERS)
    seen: list[set[int]] = []
    sizes = set()
    for worker in range(WORKERS):
        numbers = torch.arange(order.batches_per_epoch)
        rows = order.indices(numbers, torch.full_like(numbers, worker))
        seen.append(set(rows.flatten().tolist()))
        sizes |= {rows.shape[1], split.indices(numbers[:1], torch.tensor([worker])).shape[1]}
    shared = sum(len(a & b) for a, b in itertools.combinations(seen, 2))
    return {
        "shared samples": shared,
        "covered": len(set().union(*seen)) / examples,
        "difference of mini-batches": max(sizes) - min(sizes),
    }


def layer_wise(run_seed: int) -> dict[str, Any]:
    """The three orders against each other and against serial."""
    trainer = Trainer(run_seed)
    serial = trainer.run(1)[-1]
    synchronous = trainer.run(WORKERS)[-1]
    counted = CountingCollective(Local(WORKERS))
    ends = [
        trainer.run(WORKERS, counted=counted, order=order, segmented=True)[-1]
        for order in ("all", "backward", "completed")
    ]
    return {
        "sequential difference": max(apart(end, serial) for end in ends),
        "synchronous difference": max(apart(end, synchronous) for end in ends),
        "order difference": max(apart(a, b) for a, b in itertools.combinations(ends, 2)),
        "reductions per update and tensor": len(counted.sizes) / (3 * UPDATES * len(trainer.flat.segments)),
    }


def delayed(run_seed: int) -> dict[str, Any]:
    """When gradients arrive, by the first update that moves and by exchanging one gradient for another."""
    trainer = Trainer(run_seed)
    synchronous = trainer.run(WORKERS)
    moved_first, idle, staleness, applied, solvers = [], [], [], [], []
    for delay in (1, 2, 3):
        path = trainer.run(WORKERS, delay=delay)
        read = trainer.run(WORKERS, delay=delay, solver="read")[-1]
        solvers.append(apart(path[-1], read) / apart(path[-1], path[0]))
        moved_first.append(next(t for t in range(len(path)) if apart(path[t], path[0]) > 0) - 1)
        idle.append(max(apart(path[t], path[0]) for t in range(delay + 1)))
        ages = gradient_ages(trainer, delay)
        staleness.append(sum(ages) / len(ages) / delay)
        applied.append(float(len(set(ages)) == 1) * ages[0])
    return {
        "first update that moves": moved_first,
        "moved while idle": max(idle),
        "age of applied gradients": applied,
        "staleness over delay": staleness,
        "effect of the solver": solvers,  # decay at the weights read instead of today's, over the distance moved
        "zero delay difference": apart(trainer.run(WORKERS, delay=0)[-1], synchronous[-1]),
        "largest stable rate": [largest_stable_rate(delay) for delay in range(4)],
        "largest stable rate, momentum 0.9": [largest_stable_rate(delay, 0.9) for delay in range(4)],
    }


def gradient_ages(trainer: Trainer, delay: int) -> list[int]:
    """For each gradient of a run: turns from the one that computed it to the one whose update it changes.

    Gradient t is the unit vector e_t, so the update of a turn shows in its coordinates which gradient it used.
    """
    d, lr = UPDATES, torch.tensor(1.0, dtype=torch.float64)
    algorithm = DelayedSGD(CaffeSGD(), Local(1), delay)
    state = algorithm.init(torch.zeros(d, dtype=torch.float64))
    ages = []
    for turn in itertools.islice(rounds(1), d + delay):
        entries = turn.entries if turn.t < d else ()
        unit = torch.eye(d, dtype=torch.float64)[turn.t][None] if entries else torch.zeros(0, d)
        after = algorithm.update(state, Turn(turn.t, entries), torch.zeros(1), unit, lr)
        ages += [turn.t - int(place) for place in torch.nonzero(after.x - state.x).flatten()]
        state = after
    return ages


def largest_stable_rate(delay: int, momentum: float = 0.0) -> float:
    """Where x_{t+1} = x_t - eta x_{t-delay} starts to grow, run by the implementation itself on f = x^2 / 2.

    Many rates are tried at once as coordinates of their own; a second, finer grid lies where the first one turns.
    """
    low, high = 0.0, 4.0
    for points in (401, 201):
        etas = torch.linspace(low, high, points, dtype=torch.float64)
        growing = torch.nonzero(grows(etas, delay, momentum)).flatten()
        first = int(growing[0])
        low, high = float(etas[first - 1]), float(etas[first])
    return (low + high) / 2


def grows(etas: Tensor, delay: int, momentum: float, turns: int = 1200) -> Tensor:
    """Whether |x| is larger in the last third of the turns than in the second, by learning rate."""
    algorithm = DelayedSGD(CaffeSGD(momentum, lr_scale=etas), Local(1), delay)
    state, lr = algorithm.init(torch.ones_like(etas)), torch.ones((), dtype=torch.float64)
    peaks = torch.zeros(3, len(etas), dtype=torch.float64)
    for turn in itertools.islice(rounds(1), turns):
        state = algorithm.update(state, turn, torch.zeros(1), state.x[None].clone(), lr)
        state = state._replace(x=state.x.clamp(-1e100, 1e100))
        third = 3 * turn.t // turns
        peaks[third] = torch.maximum(peaks[third], state.x.abs())
    return (peaks[2] > peaks[1]) | (peaks[1] >= 1e100)


def properties(spec: RunSpec, context: Context) -> Outcome:
    """All of the above, by the names the measures of ``algorithms.py`` and ``equations.py`` read."""
    results: dict[str, Any] = {}
    steps = (algorithm_1, synchronous, layer_wise, delayed)
    for done, step in enumerate(steps, start=1):
        results |= {f"{step.__name__}/{name}": value for name, value in step(spec.seed).items()}
        context.report(done / (len(steps) + 1))
    results |= {f"partition/{name}": value for name, value in partition().items()}
    return Outcome("finished", results)
