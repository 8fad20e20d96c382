"""Rudra's own experiments by name. Nothing here imports torch, numpy or simpy before a run starts."""

from __future__ import annotations

from dataclasses import replace

from reference_impls.rudra_protocol import gradients_per_update
from suite.experiment import Experiment, bodies, lazily
from suite.runner import cost
from suite.spec import RunSpec, trainings
from suite.training.settings import SERVED as SETTINGS

SERVED = 10e-6  # seconds of a gradient in the simulated server


def _training_seconds(spec: RunSpec) -> float:
    """Gradients, the evaluations, and what an update takes beside them.

    Gradients on the same weights are one batch: all of an update under hardsync, and as many as arrive between two
    updates under n-softsync, where they read different weights once n exceeds one.
    """
    total = 0.0
    for s in (stage.settings for stage in trainings(spec)):
        model, n, updates = s["model"], s["algorithm"]["n"], s["updates"]
        gradients = gradients_per_update(s["workers"], n)
        joined = gradients if n <= 1 else 1
        total += cost.gradient_seconds(updates * gradients * s["batch"], updates * gradients / joined, **model)
        total += cost.test_seconds((updates / s["evaluate"]["every"] + 1) * 10_000, **model)
        total += updates * (cost.OVERHEAD + gradients * SERVED)
    return total


def _protocol_seconds(spec: RunSpec) -> float:
    """Gradients over what one core plays in a second, with the checks of every update."""
    s = spec.settings
    gradients = s["updates"] * gradients_per_update(s["learners"], s["n"])
    return gradients / (150_000 if "clock" in s else 40_000)


def _leave_one_out_seconds(spec: RunSpec) -> float:
    """Fits, of about four seconds on CIFAR-10 and seven on ImageNet."""
    s = spec.settings
    return len(s["calibrate"]) * len(s["starts"]) * (4.0 if s["model"] == "cifar" else 7.0)


body = bodies(__name__)


EXPERIMENTS = {
    "rudra/train": replace(
        cost.TRAIN, load=lazily("suite.parameter_server.training:train"), seconds=_training_seconds, settings=SETTINGS
    ),
    "rudra/protocol": Experiment(body("times:run"), _protocol_seconds, clock="virtual", arithmetic=True),
    "rudra/cifar-times": Experiment(body("times:cifar_times"), lambda spec: 4.0, clock="virtual"),
    "rudra/imagenet-times": Experiment(body("times:imagenet_times"), lambda spec: 6.0, clock="virtual"),
    "rudra/leave-one-out": Experiment(body("times:leave_one_out"), _leave_one_out_seconds, clock="virtual"),
    "rudra/systems": Experiment(
        body("systems:systems"),
        lambda spec: 8.0 * spec.settings["seconds"] * spec.settings["updates"],
        memory=lambda spec: 3_000_000_000,
        timed=True,
        clock="asleep",
    ),
    "rudra/throughput": Experiment(body("throughput:run"), lambda spec: 4.0, timed=True),
}
