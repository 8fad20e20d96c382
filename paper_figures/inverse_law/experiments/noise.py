"""The experiment ``inverse_law/noise``: variance of the mini-batch gradient by batch size."""

from __future__ import annotations

import torch

from paper_figures.inverse_law.experiments.sweep import Trainer
from reference_impls.numbers import on_device
from suite.data.order import WithReplacement
from suite.experiment import Context
from suite.lazy import pd
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.numerics import apply


def gradient_noise(spec: RunSpec, context: Context) -> Outcome:
    """Variance, summed over parameters, of the mini-batch gradient at a point reached after ``warm`` updates.

    Settings as of the sweep, with ``batches`` and ``draws``. Batches are drawn with replacement; each variance
    has ``draws`` gradients behind it, on batches of its own.
    """
    apply(context.execution)
    settings = spec.settings
    trainer = Trainer(spec, context)
    state = trainer.advance(trainer.start(), 0, settings["warm"])
    point = trainer.algorithm.model(state)[None]
    rows = []
    for batch in settings["batches"]:
        order = WithReplacement(len(trainer.problem.targets), batch, seed(spec.seed, "noise", batch))
        mean, total = torch.zeros(trainer.problem.d, dtype=torch.float64), 0.0
        for number in range(settings["draws"]):
            examples = order.indices(on_device([number], point.device))[0]
            gradient = trainer.backend(point, trainer.buffers, [trainer.problem.fetch(examples)])[1][0]
            step = gradient.double().cpu() - mean  # Welford's sums
            mean += step / (number + 1)
            total += float(step.square().sum()) * number / (number + 1)
        rows.append((batch, total / (settings["draws"] - 1)))
    return Outcome("finished", {}, {"variance": pd.DataFrame(rows, columns=["batch", "variance"])})
