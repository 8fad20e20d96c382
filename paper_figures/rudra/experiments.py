"""Rudra's own experiments by name. Nothing here imports torch, numpy or simpy before a run starts."""

from __future__ import annotations

from suite import training_cost
from suite.experiments import Body, Experiment
from suite.models.table import counts
from suite.spec import RunSpec


def _train() -> Body:
    from suite.server_training import train

    return train


def _protocol() -> Body:
    from paper_figures.rudra.protocol_run import run

    return run


def _cifar_times() -> Body:
    from paper_figures.rudra.calibration import cifar_times

    return cifar_times


def _imagenet_times() -> Body:
    from paper_figures.rudra.calibration import imagenet_times

    return imagenet_times


def _identities() -> Body:
    from paper_figures.rudra.identities import run

    return run


def _throughput() -> Body:
    from paper_figures.rudra.throughput_run import run

    return run


def _training_seconds(spec: RunSpec) -> float:
    """Examples x 3 forward passes, the evaluations, and an update's overhead per job."""
    s = spec.settings
    workers, n = s["workers"], s["algorithm"]["n"]
    flops = counts(s["model"]["name"]).flops_per_example
    examples = s["updates"] * s["batch"] * (workers // max(n, 1))
    evaluations = s["updates"] / s["evaluate"]["every"] + 1
    work = (3 * examples + evaluations * 10_000) * flops / training_cost.FLOPS_PER_SECOND
    return work + s["updates"] * training_cost.OVERHEAD


def _protocol_seconds(spec: RunSpec) -> float:
    """Gradients over what one core plays in a second, with the checks of every update."""
    s = spec.settings
    gradients = s["updates"] * (s["learners"] // max(s["n"], 1))
    return gradients / (150_000 if "clock" in s else 40_000)


EXPERIMENTS = {
    "rudra/train": Experiment(
        _train, _training_seconds, training_cost.data, training_cost.memory, pilot=training_cost.pilot
    ),
    "rudra/protocol": Experiment(_protocol, _protocol_seconds),
    "rudra/cifar-times": Experiment(_cifar_times, lambda spec: 4.0),
    "rudra/imagenet-times": Experiment(_imagenet_times, lambda spec: 6.0),
    "rudra/identities": Experiment(_identities, lambda spec: 1.0),
    "rudra/throughput": Experiment(_throughput, lambda spec: 4.0, timed=True),
}
