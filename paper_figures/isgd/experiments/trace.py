"""Algorithm 1 watched from outside: every update of a run, in float64, with what it must equal beside it.

Eqs. 11 and 12 and Algorithm 2 are watched on undertrained batches of a small network, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor

from reference_impls.contract import Algorithm, GradientRef, Turn
from reference_impls.isgd import ISGD
from suite.experiment import Context
from suite.runs.run import Outcome
from suite.spec import RunSpec
from suite.training.build import Setup, assemble
from suite.training.gradients.backend import Backend, Batch, compute_gradients
from suite.training.gradients.paths import backend
from suite.training.loop import rounds
from suite.training.numerics import apply


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


def objective(setting: Setting, batch: Batch, w: Tensor, limit: Tensor, anchor: Tensor) -> Tensor:
    """Eq. 11: half the squared excess of the loss over the limit, plus half the squared move over n_w."""
    psi, _ = setting.made.problem.loss(w, setting.buffers[0], batch)
    return 0.5 * (psi - limit).square() + 0.5 * (w - anchor).square().sum() / w.numel()


def undertrained(setting: Setting, count: int, cases: int) -> list[tuple[Any, Batch]]:
    """The first ``cases`` states that enter Algorithm 2 within ``count`` updates, with their undertrained batch."""
    made, found = setting.made, []
    for update in updates(setting, count):
        if bool(update.after.chasing) and not bool(update.before.chasing):
            examples = made.order.indices(torch.tensor([update.batch], device=made.x0.device))[0]
            found.append((update.after, made.problem.fetch(examples)))
            if len(found) == cases:
                return found
    raise ValueError(f"only {len(found)} of {cases} accelerations began within {count} updates; raise updates")


def subproblem(spec: RunSpec, context: Context) -> Outcome:
    """Small steps of Algorithm 2 by the reference implementation, against Eq. 11 itself.

    Results: ``derivative``, largest difference between a step over zeta and the automatic derivative of Eq. 11;
    ``decrease``, relative fall of Eq. 11 in each step; ``closer``, relative distance from w_{t-1} that the penalty
    saved after all steps, per case; ``at_solution``, Eq. 11 at unmoved weights whose loss is the limit;
    ``elsewhere``, how many of the other points tried have a value that is not positive; ``excess``, loss over
    limit at the start (nats).
    """
    setting = prepare(spec.settings, spec.seed, context)
    made, zeta = setting.made, spec.settings["zeta"]
    small = replace(isgd_of(setting), zeta=zeta, stop=10**6)
    derivative, decrease, closer, excess, at_solution, elsewhere = [], [], [], [], [], 0
    value_and_grad = torch.func.grad_and_value(lambda w, batch, *at: objective(setting, batch, w, *at))
    for state, batch in undertrained(setting, spec.settings["updates"], spec.settings["cases"]):
        limit, anchor, free = state.limit, state.anchor, state.x
        first, _ = made.problem.loss(state.x, setting.buffers[0], batch)
        excess.append(float(first - limit))
        for t in range(spec.settings["steps"]):
            slope, value = value_and_grad(state.x, batch, limit, anchor)
            after = step(setting, small, state, Turn(t, (GradientRef(0, t, t),))).after
            derivative.append(gap((state.x - after.x) / zeta, slope))
            decrease.append(float(1 - objective(setting, batch, after.x, limit, anchor) / value))
            # the chasing term alone: Eq. 12 about its own point, where the penalty's derivative is zero
            free = free - zeta * value_and_grad(free, batch, limit, free)[0]
            state = after._replace(chasing=state.chasing, iteration=state.iteration)  # stay, even below the limit
        closer.append(float(1 - (state.x - anchor).norm() / (free - anchor).norm()))
        solved, _ = made.problem.loss(anchor, setting.buffers[0], batch)
        at_solution.append(float(objective(setting, batch, anchor, solved, anchor)))
        others = [(anchor, solved + 1e-3, anchor), (anchor, solved - 1e-3, anchor), (state.x, solved, anchor)]
        elsewhere += sum(float(objective(setting, batch, *other)) <= 0 for other in others)
    results = {
        "derivative": max(derivative),
        "decrease": decrease,
        "closer": closer,
        "excess": excess,
        "at_solution": max(at_solution),
        "elsewhere": elsewhere,
    }
    return Outcome("finished", results)
