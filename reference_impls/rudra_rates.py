"""Rudra's rates in plain numbers, which specifications of runs read: nothing here imports torch.

    paper   | code                 | unit
    lambda  | workers              | learners
    n       | n                    | splitting parameter; 0 is hardsync
    c       | gradients_per_update | gradients
    alpha_0 | base_rate            | learning rate of the reference model
    mu      | examples             | examples in a learner's mini-batch
    B       | reference_examples   | examples in the reference model's mini-batch

The paper and the update rules are those of :mod:`reference_impls.rudra`.
"""

from __future__ import annotations

from math import sqrt


def gradients_per_update(workers: int, n: int) -> int:
    """c = floor(lambda / n), lambda under hardsync (section 3.1).

    Raises ValueError unless 0 <= n <= workers and workers >= 1.
    """
    if workers < 1 or not 0 <= n <= workers:
        raise ValueError(
            f"rudra: n={n} with {workers} learners; n must be 0 (hardsync) or from 1 (softsync over all "
            "learners) to the number of learners (async), of which there must be at least one"
        )
    return workers // max(n, 1)


def hardsync_rate(base_rate: float, workers: int, examples: int, reference_examples: int = 128) -> float:
    """alpha_0 sqrt(lambda mu / B) (section 3.2)."""
    return base_rate * sqrt(workers * examples / reference_examples)


def softsync_rate(base_rate: float, n: int) -> float:
    """alpha_0 / n (Eq. 6); whatever the mini-batch."""
    return base_rate / n
