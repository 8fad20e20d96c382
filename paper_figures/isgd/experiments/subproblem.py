"""Eq. 11 and 12 and Algorithm 2 on undertrained batches of a small network, in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from paper_figures.isgd.experiments.trace import Setting, gap, isgd_of, prepare, step, updates
from reference_impls.contract import GradientRef, Turn
from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec
from suite.training.gradients.types import Batch


class Case(NamedTuple):
    """A state of ISGD that has just found its batch undertrained."""

    state: Any
    batch: Batch


def objective(setting: Setting, case: Case, w: Tensor, limit: Tensor, anchor: Tensor) -> Tensor:
    """Eq. 11: half the squared excess of the loss over the limit, plus half the squared move over n_w."""
    psi, _ = setting.made.problem.loss(w, setting.buffers[0], case.batch)
    return 0.5 * (psi - limit).square() + 0.5 * (w - anchor).square().sum() / w.numel()


def undertrained(setting: Setting, count: int, cases: int) -> list[Case]:
    """The first ``cases`` states that enter Algorithm 2 within ``count`` updates."""
    made, found = setting.made, []
    for update in updates(setting, count):
        if bool(update.after.chasing) and not bool(update.before.chasing):
            examples = made.order.indices(torch.tensor([update.batch], device=made.x0.device))[0]
            found.append(Case(update.after, made.problem.fetch(examples)))
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
    value_and_grad = torch.func.grad_and_value(lambda w, case, *at: objective(setting, case, w, *at))
    for case in undertrained(setting, spec.settings["updates"], spec.settings["cases"]):
        state, limit, anchor = case.state, case.state.limit, case.state.anchor
        free = state.x
        first, _ = made.problem.loss(state.x, setting.buffers[0], case.batch)
        excess.append(float(first - limit))
        for t in range(spec.settings["steps"]):
            slope, value = value_and_grad(state.x, case, limit, anchor)
            after = step(setting, small, state, Turn(t, (GradientRef(0, t, t),))).after
            derivative.append(gap((state.x - after.x) / zeta, slope))
            decrease.append(float(1 - objective(setting, case, after.x, limit, anchor) / value))
            # the chasing term alone: Eq. 12 about its own point, where the penalty's derivative is zero
            free = free - zeta * value_and_grad(free, case, limit, free)[0]
            state = after._replace(chasing=state.chasing, iteration=state.iteration)  # stay, even below the limit
        closer.append(float(1 - (state.x - anchor).norm() / (free - anchor).norm()))
        solved, _ = made.problem.loss(anchor, setting.buffers[0], case.batch)
        at_solution.append(float(objective(setting, case, anchor, solved, anchor)))
        others = [(anchor, solved + 1e-3, anchor), (anchor, solved - 1e-3, anchor), (state.x, solved, anchor)]
        elsewhere += sum(float(objective(setting, case, *other)) <= 0 for other in others)
    results = {
        "derivative": max(derivative),
        "decrease": decrease,
        "closer": closer,
        "excess": excess,
        "at_solution": max(at_solution),
        "elsewhere": elsewhere,
    }
    return Outcome("finished", results)
