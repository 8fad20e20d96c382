"""Rudra's own experiments by name. Nothing here imports torch, numpy or simpy before a run starts."""

from __future__ import annotations

from reference_impls.rudra_rates import gradients_per_update
from suite.experiment import Experiment, lazily
from suite.models.table import counts
from suite.runner import cost as training_cost
from suite.spec import RunSpec

NATIVE = 0.4  # seconds of the native step, of those through autograd


def _training_seconds(spec: RunSpec) -> float:
    """Examples x 3 forward passes, by the native step at small batches, the evaluations, and an update's overhead."""
    s = spec.settings
    flops = counts(s["model"]["name"]).flops_per_example
    examples = s["updates"] * s["batch"] * gradients_per_update(s["workers"], s["algorithm"]["n"])
    evaluations = s["updates"] / s["evaluate"]["every"] + 1
    passes = 3 * (NATIVE if s["batch"] <= training_cost.SMALL else 1.0)
    work = (passes * examples + evaluations * 10_000) * flops / training_cost.FLOPS_PER_SECOND
    return work + s["updates"] * training_cost.OVERHEAD


def _protocol_seconds(spec: RunSpec) -> float:
    """Gradients over what one core plays in a second, with the checks of every update."""
    s = spec.settings
    gradients = s["updates"] * gradients_per_update(s["learners"], s["n"])
    return gradients / (150_000 if "clock" in s else 40_000)


def _leave_one_out_seconds(spec: RunSpec) -> float:
    """Fits, of about four seconds on CIFAR-10 and seven on ImageNet."""
    s = spec.settings
    return len(s["calibrate"]) * len(s["starts"]) * (4.0 if s["model"] == "cifar" else 7.0)


EXPERIMENTS = {
    "rudra/train": Experiment(
        lazily("suite.parameter_server.training:train"),
        _training_seconds,
        training_cost.data,
        training_cost.memory,
        measure=training_cost.TRAIN.measure,
        pilot=training_cost.TRAIN.pilot,
    ),
    "rudra/protocol": Experiment(
        lazily("paper_figures.rudra.experiments.protocol:run"), _protocol_seconds, arithmetic=True
    ),
    "rudra/cifar-times": Experiment(lazily("paper_figures.rudra.experiments.times:cifar_times"), lambda spec: 4.0),
    "rudra/imagenet-times": Experiment(
        lazily("paper_figures.rudra.experiments.times:imagenet_times"), lambda spec: 6.0
    ),
    "rudra/leave-one-out": Experiment(
        lazily("paper_figures.rudra.experiments.times:leave_one_out"), _leave_one_out_seconds
    ),
    "rudra/identities": Experiment(lazily("paper_figures.rudra.experiments.identities:run"), lambda spec: 1.0),
    "rudra/throughput": Experiment(
        lazily("paper_figures.rudra.experiments.throughput:run"), lambda spec: 4.0, timed=True
    ),
}
