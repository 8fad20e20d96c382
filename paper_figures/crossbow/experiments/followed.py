"""The experiment ``crossbow/followed``: SMA, every replica evaluated beside the average model, growing if asked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from reference_impls.crossbow import SMA
from suite.communication.collectives import Local
from suite.experiment import Context, Outcome, OutOfTime
from suite.model_averaging.engine import Learners
from suite.runner.autotune import measure_training
from suite.spec import RunSpec, seed
from suite.training import checkpoint
from suite.training.build import Setup, assemble
from suite.training.evaluation import score
from suite.training.gradients.paths import backend_of, seed_masks
from suite.training.numerics import apply


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
