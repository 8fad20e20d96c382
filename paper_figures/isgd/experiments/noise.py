"""Batch size and gradient noise: gradient variance on a network, excess loss on a noisy quadratic."""

from __future__ import annotations

import pandas as pd
import torch

from reference_impls.numbers import on_device
from suite.data.order import WithReplacement
from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.build import assemble
from suite.training.gradients.looped import AutogradGradients
from suite.training.numerics import apply


def variance(spec: RunSpec, context: Context) -> Outcome:
    """Variance (summed over parameters) of the gradient of batches drawn with replacement, after some training.

    Per-example independence makes the variance exactly proportional to 1/b; what is estimated is the exponent.
    Returns the table ``variance`` (batch, variance).
    """
    apply(context.execution)
    settings = {**spec.settings, "algorithm": {"name": "sgd"}}
    made = assemble(settings, spec.seed, context.execution, context.data)
    gradients, x, b0 = AutogradGradients(made.problem), made.x0, made.problem.b0()[None]
    examples = len(made.problem.targets)
    for number in range(settings["warm"]):
        batch = made.problem.fetch(made.order.indices(on_device([number], x.device))[0])
        x = x - settings["rate"] * gradients(x[None], b0, [batch])[1][0]
    rows = []
    for batch in settings["batches"]:
        drawn = WithReplacement(examples, batch, seed(spec.seed, "variance", batch))
        mean, total = torch.zeros_like(x, dtype=torch.float64), 0.0
        for number in range(settings["draws"]):
            indices = drawn.indices(on_device([number], x.device))[0]
            gradient = gradients(x[None], b0, [made.problem.fetch(indices)])[1][0].double()
            step = gradient - mean
            mean += step / (number + 1)
            total += float(step @ (gradient - mean))
        rows.append({"batch": batch, "variance": total / (settings["draws"] - 1)})
        context.report(len(rows) / len(settings["batches"]))
    return Outcome("finished", {"parameters": made.problem.d}, {"variance": pd.DataFrame(rows)})


def bound(spec: RunSpec, context: Context) -> Outcome:
    """Excess loss of averaged SGD on a quadratic with unit noise, many runs at once in float64.

    The step is 1 / (L + sqrt(T / b)), the choice behind Eq. 21. Returns ``bound`` (batch, updates, excess).
    """
    settings = spec.settings
    generator = torch.Generator().manual_seed(seed(spec.seed, "quadratic"))
    curvature = torch.logspace(-2, 0, settings["d"], dtype=torch.float64)
    start = torch.ones(settings["runs"], settings["d"], dtype=torch.float64)
    rows = []
    for batch in settings["batches"]:
        horizon = 4
        while horizon <= settings["updates"]:
            rate = 1 / (1 + (horizon / batch) ** 0.5)
            x, average = start.clone(), torch.zeros_like(start)
            for t in range(horizon):
                noise = torch.randn(start.shape, dtype=torch.float64, generator=generator) / batch**0.5
                x = x - rate * (curvature * x + noise)
                average += (x - average) / (t + 1)
            excess = float((0.5 * curvature * average**2).sum(1).mean())
            rows.append({"batch": batch, "updates": horizon, "excess": excess})
            horizon *= 2
    return Outcome("finished", {}, {"bound": pd.DataFrame(rows)})
