"""The experiment ``rudra/throughput``: what small mini-batches cost on this machine, both sides alternating."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from suite.experiment import Context, Outcome
from suite.runner.autotune import alternating
from suite.spec import RunSpec, seed
from suite.training.build import RandomPictures
from suite.training.numerics import apply


def run(spec: RunSpec, context: Context) -> Outcome:
    """Seconds per example of training steps, and flop/s of W X with one example per column, at two batches.

    Settings: ``batches`` [small, large], ``repetitions``, ``examples`` per repetition, ``width`` of square W.
    """
    apply(context.execution)
    s = spec.settings
    generator = torch.Generator().manual_seed(seed(spec.seed, "throughput"))
    problem = RandomPictures("caffe_cifar_full", spec.seed, s["examples"], "cpu")
    weights = torch.randn(s["width"], s["width"], generator=generator)
    columns = torch.randn(s["width"], max(s["batches"]), generator=generator)

    def train(batch: int) -> None:
        for first in range(0, s["examples"], batch):
            problem.differentiate(batch, first)

    def multiply(batch: int) -> None:
        part = columns[:, :batch].contiguous()
        for _ in range(2 * max(s["batches"]) // batch):
            weights @ part

    small, large = s["batches"]
    results: dict[str, Any] = {
        "training_ratios": ratios(train, small, large, s["repetitions"]),
        "product_ratios": ratios(multiply, small, large, s["repetitions"]),
    }
    return Outcome("finished", results)


def ratios(work: Callable[[int], None], small: int, large: int, repetitions: int) -> list[float]:
    """Time of the same work in small batches over that in large ones, pair by pair."""
    seconds = alternating({batch: partial(work, batch) for batch in (small, large)}, repetitions)
    return [a / b for a, b in zip(seconds[small], seconds[large], strict=True)]
