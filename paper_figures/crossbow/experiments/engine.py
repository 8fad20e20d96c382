"""The experiments ``crossbow/engine``, ``crossbow/engine-asleep`` and ``crossbow/tasks``: the task engine.

In the first each rule computes beside its rival, on the cores at hand. In the second learning tasks sleep for as
long as their batch is large, so that any number of them run side by side, as small kernels do on a GPU; tasks,
averages and waiting are real.

In ``crossbow/tasks`` learning and synchronisation tasks on streams are simulated and recorded. The virtual
schedules are deterministic; the recorded trace is of real threads. Neither trains a network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from statistics import median
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from paper_figures.crossbow.experiments.throughput import PICTURES
from reference_impls.crossbow import SMA
from suite.communication.collectives import Local
from suite.experiment import Context, Outcome
from suite.model_averaging.engine import Engine, Learners
from suite.model_averaging.task_schedule import Durations, idle_seconds, schedule
from suite.model_averaging.tuner import tune
from suite.runner.autotune import alternating
from suite.runs.long_table import by_repeat
from suite.spec import RunSpec, seed
from suite.training.build import random_classification
from suite.training.gradients.backend import Batch, Rows
from suite.training.gradients.looped import Functional
from suite.training.gradients.paths import backend, refusals
from suite.training.numerics import apply
from suite.training.optimizers import CaffeSGD, InPlace
from suite.training.problem import QuadraticProblem

RULES: dict[str, dict[str, Any]] = {
    "first come": {},
    "round robin": {"policy": "round-robin"},
    "barrier": {"overlap": False},
}
RATE = 0.001


def engine(spec: RunSpec, context: Context) -> Outcome:
    """Seconds of an iteration by rule, on batches of one size and of several, and by number of learners.

    All sides alternate in one process, and every side of a kind reads the same batches. ``in turn`` is the rule
    without tasks, one learner after the other. Results name the number of learners at which the tuner ended, which
    began with one, and the path of the gradients. The table ``seconds`` has a row for each side and repeat.
    """
    apply(context.execution)
    settings, k = spec.settings, spec.settings["learners"]
    ready = partial(made, spec, context.execution)
    sides = by_rule(ready, settings)
    sides["in turn, alike"] = partial(one_by_one, ready(k), settings["turns"])
    sides |= {f"{m} learners": trained(ready(m), settings) for m in range(1, settings["most"] + 1)}
    table = timed(sides, settings)
    context.report(0.8)
    growing = ready(1)
    rate = partial(throughput, growing, trained(growing, settings))
    history = tune(growing, rate, threshold=settings["threshold"], readings=3, most=settings["most"])
    results = {"tuned": history[-1].asked, "path": growing.gradients.name}
    return Outcome("finished", results, {"seconds": table})


def asleep(spec: RunSpec, context: Context) -> Outcome:
    """The same seconds by rule, of learning tasks that sleep."""
    return Outcome("finished", {}, {"seconds": timed(by_rule(partial(sleeping, spec), spec.settings), spec.settings)})


def by_rule(ready: Callable[..., Learners], settings: Mapping[str, Any]) -> dict[str, Callable[[], object]]:
    """Some iterations under each rule, on batches alike and varied."""
    return {
        f"{rule}, {batches}": trained(ready(settings["learners"], varied=batches == "varied"), settings, **options)
        for rule, options in RULES.items()
        for batches in ("alike", "varied")
    }


def timed(sides: Mapping[str, Callable[[], object]], settings: Mapping[str, Any]) -> pd.DataFrame:
    """Seconds of an iteration, a row for each side and repeat."""
    table = by_repeat(alternating(sides, settings["repeats"]), "side")
    return table.assign(seconds=table["seconds"] / settings["turns"])


class Asleep(Functional):
    """Gradients that take as many seconds as the rows of their batch say together."""

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        time.sleep(float(batches[0][0].sum()))
        return super().__call__(points, buffers, batches)


def sleeping(spec: RunSpec, k: int, *, varied: bool) -> Learners:
    """Learners whose batches take ``seconds``, or as long on average."""
    batch, seconds = spec.settings["batch"], spec.settings["seconds"]
    problem = QuadraticProblem(torch.full((2 * batch, 1), seconds / batch), torch.ones(1))
    return Learners(SMA(CaffeSGD(), Local(k)), torch.ones(1), Asleep(problem), drawn(spec, "cpu", varied))


def made(spec: RunSpec, execution: Mapping[str, Any], k: int, *, varied: bool = False) -> Learners:
    """Learners on random pictures."""
    device, pictures = execution["device"], PICTURES * spec.settings["batch"]
    problem = random_classification({"name": spec.settings["model"]}, pictures, execution, channels_last=True)
    path = "looped" if "native" in refusals(problem) else "native"
    optimizer = CaffeSGD(0.9)
    solver = InPlace(optimizer, overwrites=False) if device == "cpu" else optimizer
    return Learners(SMA(solver, Local(k)), problem.flat.point(), backend(path, problem), drawn(spec, device, varied))


def drawn(spec: RunSpec, device: str, varied: bool) -> Callable[[Tensor], Tensor]:
    """Examples of a batch; sizes of varied batches are drawn, and as large as the others on average."""
    batch = spec.settings["batch"]
    images = torch.arange(2 * batch, device=device)

    def examples(numbers: Tensor) -> Tensor:
        size = 1 + seed(spec.seed, "size", int(numbers[0])) % (2 * batch - 1) if varied else batch
        return images[:size].expand(len(numbers), -1)

    return examples


def trained(learners: Learners, settings: Mapping[str, Any], **options: Any) -> Callable[[], object]:
    """Some iterations by the engine."""
    rate = torch.tensor(RATE, device=learners.centre.device)
    return partial(Engine(learners, settings["workers"], **options).run, settings["turns"], rate)


def one_by_one(learners: Learners, turns: int) -> None:
    for _ in range(turns):
        learners.step(torch.tensor(RATE, device=learners.centre.device))


def throughput(learners: Learners, work: Callable[[], object]) -> float:
    """Learning tasks per second of the present number of learners, which go on training."""
    before = learners.taken
    seconds = median(alternating({"tuned": work}, 2)["tuned"])
    return (learners.taken - before) / 3 / seconds


def tasks(spec: RunSpec, context: Context) -> Outcome:
    """Virtual schedules of 2 GPUs with 2 learners (Fig. 8), and a trace recorded from threads.

    Results: idle stream-seconds under both ways to assign batches.
    """
    durations = Durations(lambda batch: 1 + _uniform(spec.seed, batch), local=0.1, overall=0.5)
    virtual = schedule(4, 2, 2, durations)
    # Every second batch takes longer; a quadratic's gradient alone is too short to see.
    problem = QuadraticProblem(torch.tensor([[0.002], [0.003]]), torch.ones(1))  # seconds
    learners = Learners(
        SMA(CaffeSGD(), Local(2)), torch.ones(1), Asleep(problem), lambda numbers: numbers[:, None] % 2
    )
    recorded = Engine(learners, workers=2).run(12, torch.tensor(0.1))
    first_come, round_robin = [], []
    for repeat in range(spec.settings["repeats"]):
        length = lambda batch, repeat=repeat: 0.5 + _uniform(spec.seed, batch, repeat)  # seconds of a learning task
        varied = Durations(length, local=0.05, overall=0.2)
        first_come.append(idle_seconds(schedule(100, 2, 4, varied)))
        round_robin.append(idle_seconds(schedule(100, 2, 4, varied, "round-robin")))
    results: dict[str, Any] = {"idle_first_come": first_come, "idle_round_robin": round_robin}
    frames = {
        name: pd.DataFrame([asdict(t) for t in trace])
        for name, trace in (("virtual", virtual), ("recorded", recorded))
    }
    return Outcome("finished", results, frames)


def _uniform(*coordinates: int) -> float:
    return seed(*coordinates) / 2**63
