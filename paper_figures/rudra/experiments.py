"""Rudra's own experiments by name. Nothing here imports torch, numpy or simpy before a run starts."""

from __future__ import annotations

from suite import training_cost
from suite.experiments import Body, Experiment
from suite.models.table import counts
from suite.spec import RunSpec


def _train() -> Body:
    from suite.server_training import train

    return train


def _training_seconds(spec: RunSpec) -> float:
    """Examples x 3 forward passes, the evaluations, and an update's overhead per job."""
    s = spec.settings
    workers, n = s["workers"], s["algorithm"]["n"]
    flops = counts(s["model"]["name"]).flops_per_example
    examples = s["updates"] * s["batch"] * (workers // max(n, 1))
    evaluations = s["updates"] / s["evaluate"]["every"] + 1
    work = (3 * examples + evaluations * 10_000) * flops / training_cost.FLOPS_PER_SECOND
    return work + s["updates"] * 2 * training_cost.OVERHEAD


EXPERIMENTS = {
    "rudra/train": Experiment(_train, _training_seconds, training_cost.data, training_cost.memory),
}
