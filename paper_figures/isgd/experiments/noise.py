"""Batch size and gradient noise: gradient variance on a network, excess loss on a noisy quadratic."""

from __future__ import annotations

from functools import partial

import pandas as pd
import torch

from reference_impls.numbers import on_device
from suite.experiment import Context, Outcome
from suite.spec import RunSpec, seed
from suite.training.build import assemble
from suite.training.gradient_noise import gradient_variances
from suite.training.gradients.backend import AutogradGradients
from suite.training.numerics import apply


def variance(spec: RunSpec, context: Context) -> Outcome:
    """The table ``variance`` of :func:`suite.training.gradient_noise.gradient_variances`, after some training."""
    apply(context.execution)
    settings = {**spec.settings, "algorithm": {"name": "sgd"}}
    made = assemble(settings, spec.seed, context.execution, context.data)
    gradients, x, b0 = AutogradGradients(made.problem), made.x0, made.problem.b0()[None]
    for number in range(settings["warm"]):
        batch = made.problem.fetch(made.order.indices(on_device([number], x.device))[0])
        x = x - settings["rate"] * gradients(x[None], b0, [batch])[1][0]
    stream = partial(seed, spec.seed, "variance")
    table = gradient_variances(gradients, x, b0, settings["batches"], settings["draws"], stream, context.report)
    return Outcome("finished", {"parameters": made.problem.d}, {"variance": table})


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
