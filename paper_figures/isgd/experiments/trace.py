"""Algorithm 1 watched from outside: every update of a run, with what it must equal beside it."""

from __future__ import annotations

from itertools import islice

import pandas as pd
import torch
from torch import Tensor

from reference_impls.isgd import ISGD
from suite.experiment import Context, Outcome, RunSpec
from suite.training.build import assemble
from suite.training.gradients.backend import compute_gradients
from suite.training.gradients.paths import backend
from suite.training.loop import rounds
from suite.training.numerics import apply


def gap(a: Tensor, b: Tensor) -> float:
    """Largest absolute difference."""
    return float((a - b).abs().max())


def trace(spec: RunSpec, context: Context) -> Outcome:
    """Run ISGD and keep one row per update; settings are those of ``train``.

    Curve ``updates``: update, batch (number), iteration, chasing (whether it was a step of Algorithm 2), loss (nats);
    mean and limit after it (nats); ``sgd_step`` whether the new weights are the solver's, to the bit;
    ``limit_moved`` and ``anchor_moved``, by how much a step of Algorithm 2 changed its constants.
    """
    apply(context.execution)
    made = assemble(spec.settings, spec.seed, context.execution, context.data)
    algorithm, gradients, buffers = made.algorithm, backend("looped", made.problem), made.problem.b0()[None]
    if not isinstance(algorithm, ISGD):
        raise ValueError(f"the settings name {type(algorithm).__name__} where ISGD is watched")
    rate = torch.tensor(spec.settings["rate"], dtype=made.x0.dtype, device=made.x0.device)
    before, rows = algorithm.init(made.x0), []
    for turn in islice(rounds(1), spec.settings["updates"]):
        points = algorithm.points(before, turn)
        losses, sums, _ = compute_gradients(gradients, points, buffers, made.order.indices(points.batch))
        after = algorithm.update(before, turn, losses, sums, rate)
        chasing = bool(before.chasing)
        stepped, _ = algorithm.optimizer.step(before.memory, before.x, sums[0], rate)
        rows.append(
            {
                "update": turn.t,
                "batch": int(points.batch[0]),
                "iteration": int(before.iteration),
                "chasing": chasing,
                "loss": float(losses[0]),
                "mean": float(after.mean),
                "limit": float(after.limit),
                "sgd_step": torch.equal(after.x, stepped),
                "limit_moved": gap(after.limit, before.limit) if chasing else 0.0,
                "anchor_moved": gap(after.anchor, before.anchor) if chasing else 0.0,
            }
        )
        before = after
    results = {"batches": algorithm.batches, "iterations": rows[-1]["iteration"] + 1}
    return Outcome("finished", results, {"updates": pd.DataFrame(rows)})
