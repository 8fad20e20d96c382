"""How far gradients of batches scatter about the mean gradient, by batch size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from reference_impls.numbers import on_device
from suite.data.order import WithReplacement
from suite.lazy import pd
from suite.training.gradients.backend import Backend


def gradient_variances(
    backend: Backend,
    x: Tensor,
    buffers: Tensor,
    batches: Sequence[int],
    draws: int,
    stream: Callable[[int], int],
    report: Callable[[float], None] = lambda share: None,
) -> pd.DataFrame:
    """Variance, summed over parameters, of the gradient at x [d] with buffers [1, q]: columns batch and variance.

    Each has ``draws`` gradients behind it, of batches drawn with replacement from the ``stream`` of their size. So
    examples are independent and the variance is proportional to 1/b; what is estimated is the exponent.
    """
    rows = []
    for batch in batches:
        order = WithReplacement(len(backend.problem.targets), batch, stream(batch))
        mean, total = torch.zeros_like(x, dtype=torch.float64), 0.0
        for number in range(draws):
            examples = order.indices(on_device([number], x.device))  # [1, b]
            gradient = backend.indexed(x[None], buffers, examples.unbind())[1][0].double()
            step = gradient - mean  # Welford's sums
            mean += step / (number + 1)
            total += float(step @ (gradient - mean))
        rows.append({"batch": batch, "variance": total / (draws - 1)})
        report(len(rows) / len(batches))
    return pd.DataFrame(rows)
