"""Crossbow's own experiments by name, and what a run of each is expected to cost; bodies are imported when run."""

from __future__ import annotations

from suite.data.catalogue import DATASETS
from suite.experiment import Experiment, RunSpec, bodies
from suite.models.table import counts
from suite.runner.cost import FLOPS_PER_SECOND, gradient_seconds, test_seconds
from suite.training.settings import TRAINING

# Of two threads that learn at once over one that learns alone, in processor time, by the stored run.
TWO_AT_ONCE = 2.4
AUTOGRAD = 3e-3  # seconds of a step whose learners share autograd's one network, beside its images


def training_seconds(spec: RunSpec) -> float:
    """Epochs of training, and an evaluation of the average model and every replica after each."""
    s = spec.settings
    model, images, epochs = s["model"], s["images"], s["epochs"]
    gradients = gradient_seconds(epochs * images, epochs * images / s["batch"], **model)
    tested = epochs * 5 * DATASETS[s["data"]["name"]].sizes["test"]
    return gradients + test_seconds(tested, **model) + epochs * images / s["batch"] * AUTOGRAD


def timing_seconds(spec: RunSpec) -> float:
    """Gradients of all sides and of the auto-tuner; every side is repeated after a first time that does not count."""
    s = spec.settings
    gradients = 6 * sum(s["learners"]) * s["batch"] * s["turns"] * (s["repeats"] + 1)
    return 3 * gradients * counts(s["model"]).flops_per_example / FLOPS_PER_SECOND


def apart_seconds(spec: RunSpec) -> float:
    """Each of the devices takes about three readings at each of half the numbers of learners, on every path twice."""
    s = spec.settings
    images = (s["repeats"] + 1) * 3 * sum(range(1, s["most"] // 2 + 1)) * s["batch"] * s["turns"]
    return s["devices"] * 4 * gradient_seconds(images, images / s["batch"], s["model"])


def engine_seconds(spec: RunSpec) -> float:
    """Seven sides of as many learners as there are, and one of each number of them; the tuner takes a few more."""
    s = spec.settings
    tasks = (7 * s["learners"] + sum(range(1, s["most"] + 1))) * s["turns"] * (s["repeats"] + 1)
    return TWO_AT_ONCE * gradient_seconds(tasks * s["batch"], tasks, s["model"])


def hosts_seconds(spec: RunSpec) -> float:
    """Tasks of every number of learners, at every interval and with a barrier, asleep for most of it."""
    s = spec.settings
    each = s["iterations"] * (len(s["intervals"]) + 1) * sum(s["seconds"])
    return 1.05 * (s["repeats"] + 1) * each


def stepping_seconds(spec: RunSpec) -> float:
    """Two iterations on each of two paths for every batch and number of learners."""
    images = 4 * sum(spec.settings["batches"]) * sum(spec.settings["learners"])
    return 2.0 + 3 * images * counts(spec.settings["model"]).flops_per_example / FLOPS_PER_SECOND


def stepping_memory(spec: RunSpec) -> int:
    """Activations of all learners at once at the largest batch, about twice as many with their gradients."""
    images = max(spec.settings["batches"]) * max(spec.settings["learners"])
    return 350_000_000 + 9 * images * counts(spec.settings["model"]).activations_per_example


body = bodies(__name__)


EXPERIMENTS = {
    "crossbow/algebra": Experiment(body("averaging:algebra"), lambda spec: 3.0, clock="none"),
    "crossbow/tasks": Experiment(body("timing:tasks"), lambda spec: 1.0, timed=True, clock="virtual"),
    "crossbow/tuner": Experiment(body("timing:tuner"), lambda spec: 0.3, clock="none"),
    "crossbow/sizes": Experiment(body("sizes:sizes"), lambda spec: 1.0, clock="none", arithmetic=True),
    "crossbow/throughput": Experiment(body("timing:throughput"), timing_seconds, timed=True),
    "crossbow/apart": Experiment(body("hosts:apart"), apart_seconds, timed=True),
    "crossbow/engine": Experiment(body("timing:engine"), engine_seconds, timed=True),
    "crossbow/engine-asleep": Experiment(
        body("timing:asleep"),
        lambda spec: 12.0 * spec.settings["seconds"] * spec.settings["turns"] * spec.settings["repeats"],
        timed=True,
        clock="asleep",
    ),
    "crossbow/hosts": Experiment(
        body("hosts:hosts"), hosts_seconds, memory=lambda spec: 2_500_000_000, timed=True, clock="asleep"
    ),
    "crossbow/memory": Experiment(body("timing:memory"), stepping_seconds, memory=stepping_memory, clock="none"),
    "crossbow/followed": Experiment(
        body("averaging:followed"),
        training_seconds,
        lambda spec: (spec.settings["data"]["name"],),
        measure=body("averaging:choose_path"),
        settings={**TRAINING, "epochs": 1, "images": 1, "learners": list},
    ),
}
