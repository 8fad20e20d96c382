"""The experiment ``crossbow/engine``: the task engine on the cores at hand, each of its rules beside its rival."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from paper_figures.crossbow.experiments.throughput import classification
from reference_impls.crossbow import SMA
from suite.communication.collectives import Local
from suite.experiment import Context
from suite.model_averaging.engine import Engine
from suite.model_averaging.learners import Learners
from suite.model_averaging.tuner import tune
from suite.runner.timing import alternating
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.fused_step import InPlace
from suite.training.gradients.paths import backend, refusals
from suite.training.numerics import apply
from suite.training.optimizers import CaffeSGD

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
    ready = partial(made, spec, context.device)
    sides: dict[str, Callable[[], object]] = {}
    for rule, options in RULES.items():
        sides[f"{rule}, alike"] = trained(ready(k), settings, **options)
        sides[f"{rule}, varied"] = trained(ready(k, varied=True), settings, **options)
    sides["in turn, alike"] = partial(one_by_one, ready(k), settings["turns"])
    sides |= {f"{m} learners": trained(ready(m), settings) for m in range(1, settings["most"] + 1)}
    taken = alternating(sides, settings["repeats"])
    rows = [
        {"side": side, "repeat": repeat, "seconds": seconds / settings["turns"]}
        for side, row in taken.items()
        for repeat, seconds in enumerate(row)
    ]
    context.report(0.8)
    growing = ready(1)
    rate = partial(throughput, growing, trained(growing, settings))
    history = tune(growing, rate, threshold=settings["threshold"], readings=3, most=settings["most"])
    results = {"tuned": history[-1].asked, "path": growing.gradients.name}
    return Outcome("finished", results, {"seconds": pd.DataFrame(rows)})


def made(spec: RunSpec, device: str, k: int, *, varied: bool = False) -> Learners:
    """Learners on random pictures; sizes of varied batches are drawn, and as large as the others on average."""
    batch = spec.settings["batch"]
    problem = classification(spec.settings["model"], batch, device, spec.seed)
    path = "looped" if "native" in refusals(problem) else "native"
    optimizer = CaffeSGD(0.9)
    solver = InPlace(optimizer, overwrites=False) if device == "cpu" else optimizer
    images = torch.arange(2 * batch, device=device)

    def examples(numbers: Tensor) -> Tensor:
        size = 1 + seed(spec.seed, "size", int(numbers[0])) % (2 * batch - 1) if varied else batch
        return images[:size].expand(len(numbers), -1)

    return Learners(SMA(solver, Local(k)), problem.flat.point(), backend(path, problem), examples)


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
