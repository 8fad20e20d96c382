"""Algorithm 1 watched from outside: every update of a run, in float64, with what it must equal beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor

from reference_impls.contract import Algorithm, Turn
from reference_impls.isgd import ISGD
from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec
from suite.training.build import Setup, assemble
from suite.training.gradients.backend import Backend
from suite.training.gradients.batching import compute_gradients
from suite.training.gradients.paths import backend
from suite.training.numerics import apply
from suite.training.schedules import rounds


class Update(NamedTuple):
    """One turn: its batch and gradient, and the state before and after it."""

    turn: Turn
    batch: int
    loss: float
    gradient: Tensor  # [d], borrowed until the next update
    before: Any
    after: Any


class Setting(NamedTuple):
    """An assembled single-worker run and what computes its gradients."""

    made: Setup
    gradients: Backend
    buffers: Tensor
    rate: Tensor


def prepare(settings: Mapping[str, Any], seed: int, context: Context) -> Setting:
    """Assemble a run; settings are those of ``train``."""
    apply(context.execution)
    made = assemble(settings, seed, context.execution, context.data)
    rate = torch.tensor(settings["rate"], dtype=made.x0.dtype, device=made.x0.device)
    return Setting(made, backend("looped", made.problem), made.problem.b0()[None], rate)


def step(setting: Setting, algorithm: Algorithm[Any], state: Any, turn: Turn) -> Update:
    """One turn of an algorithm on the assembled problem."""
    points = algorithm.points(state, turn)
    losses, sums, _ = compute_gradients(
        setting.gradients, points, setting.buffers, setting.made.order.indices(points.batch)
    )
    after = algorithm.update(state, turn, losses, sums, setting.rate)
    return Update(turn, int(points.batch[0]), float(losses[0]), sums[0], state, after)


def updates(setting: Setting, count: int) -> Iterator[Update]:
    """The first ``count`` updates of the assembled algorithm."""
    algorithm = setting.made.algorithm
    state = algorithm.init(setting.made.x0)
    for turn in rounds(1):
        if turn.t == count:
            return
        update = step(setting, algorithm, state, turn)
        yield update
        state = update.after


def isgd_of(setting: Setting) -> ISGD:
    """The assembled algorithm. Raises ValueError for another than ISGD."""
    algorithm = setting.made.algorithm
    if not isinstance(algorithm, ISGD):
        raise ValueError(f"the settings name {type(algorithm).__name__} where ISGD is watched")
    return algorithm


def gap(a: Tensor, b: Tensor) -> float:
    """Largest absolute difference."""
    return float((a - b).abs().max())


def trace(spec: RunSpec, context: Context) -> Outcome:
    """Run ISGD and keep one row per update.

    Curve ``updates``: update, batch (number), iteration, chasing (whether it was a step of Algorithm 2), loss (nats);
    mean and limit after it (nats); ``sgd_step`` whether the new weights are the solver's, to the bit;
    ``limit_moved`` and ``anchor_moved``, by how much a step of Algorithm 2 changed its constants.
    """
    setting = prepare(spec.settings, spec.seed, context)
    algorithm = isgd_of(setting)
    rows = []
    for update in updates(setting, spec.settings["updates"]):
        before, after = update.before, update.after
        chasing = bool(before.chasing)
        stepped, _ = algorithm.optimizer.step(before.memory, before.x, update.gradient, setting.rate)
        rows.append(
            {
                "update": update.turn.t,
                "batch": update.batch,
                "iteration": int(before.iteration),
                "chasing": chasing,
                "loss": update.loss,
                "mean": float(after.mean),
                "limit": float(after.limit),
                "sgd_step": torch.equal(after.x, stepped),
                "limit_moved": gap(after.limit, before.limit) if chasing else 0.0,
                "anchor_moved": gap(after.anchor, before.anchor) if chasing else 0.0,
            }
        )
    results = {"batches": algorithm.batches, "iterations": rows[-1]["iteration"] + 1}
    return Outcome("finished", results, {"updates": pd.DataFrame(rows)})
