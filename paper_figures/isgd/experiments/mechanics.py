"""Single mechanisms of ISGD by themselves: cost of the statistics, sampling, learning rate, unbiased gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from paper_figures.isgd.experiments.trace import gap, prepare
from reference_impls import isgd
from reference_impls.contract import GradientRef, Turn
from suite.communication.collectives import Local
from suite.data.order import FixedCycle
from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec
from suite.training.optimizers import CaffeSGD

TURN = Turn(0, (GradientRef(0, 0, 0),))


class Dispatched(TorchDispatchMode):
    """Counts the tensor operations that reach the dispatcher."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


@dataclass
class Counted:
    """A number that counts the arithmetic done with it in ``tally[0]``."""

    value: float
    tally: list[int]

    def _made(self, other: Any, rule: Callable[[float, float], float]) -> Counted:
        self.tally[0] += 1
        return Counted(rule(self.value, other.value if isinstance(other, Counted) else other), self.tally)

    def __add__(self, other: Any) -> Counted:
        return self._made(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Counted:
        return self._made(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Counted:
        return self._made(other, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> Counted:
        return self._made(other, lambda a, b: a / b)


def _running(n: int) -> int:
    """Arithmetic operations of the sliding mean and sum of squares when one of n losses is replaced."""
    tally = [0]
    mean, m2, old, new = (Counted(value, tally) for value in (1.0, 2.0, 0.5, 0.7))
    sliding: Any = isgd.replace  # written for floats and tensors; any number will do
    sliding(mean, m2, n, old, new)
    return tally[0]


def _printed(n: int) -> int:
    """Arithmetic operations of line 18, STD(lossqueue), over a queue of n losses."""
    tally = [0]
    queue = [Counted(0.1 * i, tally) for i in range(n)]
    total = Counted(0.0, tally)
    for loss in queue:
        total = total + loss
    mean, squares = total / n, Counted(0.0, tally)
    for loss in queue:
        apart = loss - mean
        squares = squares + apart * apart
    return tally[0]


def _update(n: int) -> int:
    """Tensor operations of a whole update of the reference implementation after its first epoch."""
    algorithm = isgd.ISGD(CaffeSGD(), Local(1), n, zeta=0.1)
    state = algorithm.init(torch.zeros(4))._replace(iteration=torch.tensor(n + 3))
    losses, gradients, lr = torch.tensor([0.5]), torch.ones(1, 4), torch.tensor(0.1)
    with Dispatched() as seen:
        algorithm.update(state, TURN, losses, gradients, lr)
    return seen.count


def operations(spec: RunSpec, context: Context) -> Outcome:
    """Operations per iteration at each number of batches: running sums, whole update, and line 18 as printed."""
    sizes = spec.settings["batches"]
    counters = {"running": _running, "update": _update, "printed": _printed}
    return Outcome("finished", {name: [count(n) for n in sizes] for name, count in counters.items()})


def sampling(spec: RunSpec, context: Context) -> Outcome:
    """Fixed cycles of (examples, batch): every distance between returns in epochs, every count of visits per epoch.

    Results: ``periods`` and ``visits``, smallest and largest; ``batches``, different batches per epoch by size.
    """
    epochs = spec.settings["epochs"]
    periods: set[float] = set()
    visits: set[int] = set()
    batches = []
    for examples, size in spec.settings["sizes"]:
        expected = -(-examples // size)
        order = FixedCycle(examples, size, spec.seed)
        rows = order.indices(torch.arange(epochs * expected)).sort(1).values.tolist()
        seen: dict[tuple[int, ...], list[int]] = {}
        for iteration, row in enumerate(rows):
            seen.setdefault(tuple(row), []).append(iteration)
        for times in seen.values():
            periods.update((b - a) / expected for a, b in pairwise(times))
            for epoch in range(epochs):
                visits.add(sum(epoch * expected <= t < (epoch + 1) * expected for t in times))
        batches.append(len(seen))
    results = {"periods": [min(periods), max(periods)], "visits": [min(visits), max(visits)], "batches": batches}
    return Outcome("finished", results)


def rates(spec: RunSpec, context: Context) -> Outcome:
    """Feed one weight a gradient of one under losses that pass given levels; its step is the rate in use.

    Results: ``mean`` (nats) and ``rate`` after each iteration from the second epoch on, where thresholds count.
    """
    batches = 2
    settings = spec.settings
    thresholds, factors = tuple(settings["thresholds"]), tuple(settings["factors"])
    algorithm = isgd.ISGD(CaffeSGD(), Local(1), batches, zeta=0.0, stop=0, thresholds=thresholds, factors=factors)
    start = torch.zeros(1, dtype=torch.float64)
    state = algorithm.init(start)
    base = torch.tensor(settings["rate"], dtype=torch.float64)
    mean, rate = [], []
    for level in settings["levels"]:
        for _ in range(batches):
            losses, gradients = torch.tensor([level], dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
            after = algorithm.update(state, TURN, losses, gradients, base)
            if int(state.iteration) >= batches:
                mean.append(float(after.mean))
                rate.append(float(-after.x))
            state = after._replace(x=start)
    return Outcome("finished", {"mean": mean, "rate": rate})


def partition(spec: RunSpec, context: Context) -> Outcome:
    """Mean of the batch gradients over partitions into equal batches, against the gradient of all examples.

    Results: ``difference``, the largest for each batch size; ``spread``, the largest of one batch's gradient.
    """
    settings = {**spec.settings, "batch": spec.settings["batches"][0]}
    setting = prepare(settings, spec.seed, context)
    problem, point = setting.made.problem, setting.made.x0[None]
    examples, device = len(problem.targets), point.device
    _, grads, _ = setting.gradients(point, setting.buffers, [problem.fetch(torch.arange(examples, device=device))])
    full = grads[0].clone()
    difference, spread = [], 0.0
    for size in spec.settings["batches"]:
        order = FixedCycle(examples, size, spec.seed).to(device)
        total = torch.zeros_like(full)
        for row in order.indices(torch.arange(order.batches_per_epoch, device=device)):
            _, grads, _ = setting.gradients(point, setting.buffers, [problem.fetch(row)])
            total += grads[0]
            spread = max(spread, gap(grads[0], full))
        difference.append(gap(total / order.batches_per_epoch, full))
    return Outcome("finished", {"difference": difference, "spread": spread})
