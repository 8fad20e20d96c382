"""ISGD's own experiments by name: where their bodies stand, and what they cost. Only the bodies import torch."""

from __future__ import annotations

from collections.abc import Mapping

from suite.experiment import Experiment, bodies, lazily
from suite.models.table import counts
from suite.runner.cost import FLOPS_PER_SECOND
from suite.spec import RunSpec
from suite.training.settings import STREAMED, TRAINING, Kind


def latency_seconds(spec: RunSpec) -> float:
    """A forward and a backward pass (three times the forward's work) per image, plus the start."""
    images = sum(spec.settings["batches"]) * (spec.settings["repeats"] + 1)
    return 0.3 + 3 * images * counts(spec.settings["model"]).flops_per_example / FLOPS_PER_SECOND


def imagenet_seconds(spec: RunSpec) -> float:
    work = 3 * spec.settings["updates"] * spec.settings["batch"]
    return work * counts(**spec.settings["model"]).flops_per_example / FLOPS_PER_SECOND


def occupancy_seconds(spec: RunSpec) -> float:
    """Asleep for what computing takes, dilated as the link is, and four messages."""
    s = spec.settings
    message = 8 * 4 * s["numbers"] / s["bits_per_second"]
    slower = message / (4 * counts(s["model"]).parameters / s["bandwidth"])
    return (s["repeats"] + 1) * sum(slower * seconds + 4 * message for seconds in s["seconds"])


body = bodies(__name__)


def untimed(place: str, seconds: float, settings: Mapping[str, Kind] | None = None) -> Experiment:
    """An experiment without a clock that takes so long on one core."""
    return Experiment(body(place), lambda spec: seconds, clock="none", settings=settings)


EXPERIMENTS = {
    "isgd/trace": untimed("trace:trace", 0.7, TRAINING),
    "isgd/variance": untimed("noise:variance", 6.0, {**TRAINING, "batches": list, "draws": 1, "warm": 0}),
    "isgd/bound": untimed("noise:bound", 4.0),
    "isgd/latency": Experiment(body("times:latency"), latency_seconds, timed=True),
    "isgd/update-times": Experiment(body("times:update_times"), latency_seconds, timed=True),
    "isgd/occupancy": Experiment(body("times:occupancy"), occupancy_seconds, timed=True, clock="asleep"),
    "isgd/imagenet": Experiment(
        lazily("suite.training.streaming:train_top5"),
        imagenet_seconds,
        data=lambda spec: ("imagenet",),
        memory=lambda spec: 8_000_000_000,
        settings=STREAMED,
    ),
}
