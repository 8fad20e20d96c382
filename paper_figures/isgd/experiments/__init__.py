"""ISGD's own experiments by name: where their bodies stand, and what they cost. Only the bodies import torch."""

from __future__ import annotations

from suite.experiment import Experiment, lazily
from suite.models.table import counts
from suite.spec import RunSpec

FLOPS_PER_SECOND = 4e10  # of one core of the reference CPU
HERE = "paper_figures.isgd.experiments"


def latency_seconds(spec: RunSpec) -> float:
    """A forward and a backward pass (three times the forward's work) per image, plus the start."""
    images = sum(spec.settings["batches"]) * (spec.settings["repeats"] + 1)
    return 0.3 + 3 * images * counts(spec.settings["model"]).flops_per_example / FLOPS_PER_SECOND


def imagenet_seconds(spec: RunSpec) -> float:
    work = 3 * spec.settings["updates"] * spec.settings["batch"]
    return work * counts(spec.settings["model"]["name"]).flops_per_example / FLOPS_PER_SECOND


def occupancy_seconds(spec: RunSpec) -> float:
    """Asleep for what computing takes, dilated as the link is, and four messages."""
    s = spec.settings
    message = 8 * 4 * s["numbers"] / s["bits_per_second"]
    slower = message / (4 * counts(s["model"]).parameters / s["bandwidth"])
    return (s["repeats"] + 1) * sum(slower * seconds + 4 * message for seconds in s["seconds"])


EXPERIMENTS = {
    "isgd/trace": Experiment(lazily(f"{HERE}.trace:trace"), lambda spec: 0.7, clock="none"),
    "isgd/beside-sgd": Experiment(lazily(f"{HERE}.trace:beside_sgd"), lambda spec: 0.6, clock="none"),
    "isgd/parallel": Experiment(lazily(f"{HERE}.parallel:parallel"), lambda spec: 3.0, clock="none"),
    "isgd/parts": Experiment(lazily(f"{HERE}.parallel:parts"), lambda spec: 0.1, clock="none"),
    "isgd/subproblem": Experiment(lazily(f"{HERE}.subproblem:subproblem"), lambda spec: 0.7, clock="none"),
    "isgd/operations": Experiment(
        lazily(f"{HERE}.mechanics:operations"), lambda spec: 0.1, clock="none", arithmetic=True
    ),
    "isgd/sampling": Experiment(
        lazily(f"{HERE}.mechanics:sampling"), lambda spec: 0.1, clock="none", arithmetic=True
    ),
    "isgd/rates": Experiment(lazily(f"{HERE}.mechanics:rates"), lambda spec: 0.1, clock="none", arithmetic=True),
    "isgd/partition": Experiment(lazily(f"{HERE}.mechanics:partition"), lambda spec: 0.4, clock="none"),
    "isgd/latency": Experiment(lazily(f"{HERE}.latency:latency"), latency_seconds, timed=True),
    "isgd/update-times": Experiment(lazily(f"{HERE}.update_times:update_times"), latency_seconds, timed=True),
    "isgd/occupancy": Experiment(
        lazily(f"{HERE}.occupancy:occupancy"), occupancy_seconds, timed=True, clock="asleep"
    ),
    "isgd/variance": Experiment(lazily(f"{HERE}.noise:variance"), lambda spec: 6.0, clock="none"),
    "isgd/bound": Experiment(lazily(f"{HERE}.noise:bound"), lambda spec: 4.0, clock="none"),
    "isgd/imagenet": Experiment(
        lazily(f"{HERE}.imagenet:imagenet"),
        imagenet_seconds,
        data=lambda spec: ("imagenet",),
        memory=lambda spec: 8_000_000_000,
    ),
}
