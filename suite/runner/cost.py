"""What a training run is expected to cost, without importing torch."""

from __future__ import annotations

from collections.abc import Hashable

from suite.data.catalogue import DATASETS
from suite.experiment import Experiment, lazily
from suite.models.table import counts
from suite.spec import RunSpec, canonical

FLOPS_PER_SECOND = 4e10  # one core of the reference CPU on small convolutions, forward and backward
SMALL = 16  # examples of a step up to which runs are packed on a CPU
OVERHEAD = 1.5e-3  # seconds per update outside the network
STOPPED = 0.25  # of its updates that a run with a stopping rule makes; the suite's made 7% to 30%


def test_size(name: str) -> int:
    """Examples of a data set that are evaluated: its test split, or the validation split where tests are secret."""
    sizes = DATASETS[name].sizes
    return sizes["test"] if name != "imagenet" else sizes["validation"]


def expected_updates(spec: RunSpec) -> float:
    """Updates that a run will make: all of them, unless a rule is likely to stop it."""
    return spec.settings["updates"] * (STOPPED if spec.settings.get("stop") else 1.0)


def seconds(spec: RunSpec) -> float:
    """Updates x workers x batch x 3 forward passes, plus the evaluations."""
    s, updates = spec.settings, expected_updates(spec)
    flops = counts(s["model"]["name"]).flops_per_example
    images = s["evaluate"].get("test_examples", test_size(s["data"]["name"]))
    test = images + s["evaluate"].get("train_examples", 0) + s["evaluate"].get("recompute", 0)
    evaluations = updates / s["evaluate"]["every"] + 1
    work = 3 * updates * s.get("workers", 1) * s["batch"] + evaluations * test
    return work * flops / FLOPS_PER_SECOND + updates * OVERHEAD


def data(spec: RunSpec) -> tuple[str, ...]:
    return (spec.settings["data"]["name"],)


def memory(spec: RunSpec) -> int:
    """Bytes: interpreter and torch, the data set as uint8, ten vectors of parameters per worker, activations."""
    s = spec.settings
    network, info = counts(s["model"]["name"]), DATASETS[s["data"]["name"]]
    pixels = 1
    for extent in network.input_shape:
        pixels *= extent
    images = (info.sizes["train"] + test_size(info.name)) * pixels
    vectors = 4 * network.parameters * 10 * s.get("workers", 1)
    return 350_000_000 + images + vectors + 8 * max(s["batch"], 500) * network.activations_per_example


def pack(spec: RunSpec, device: str) -> Hashable:
    """Runs of one network, data set and batch shape may share a step.

    On a CPU that pays at small batches only; a network with dropout draws its masks run by run.
    """
    s = spec.settings
    if counts(s["model"]["name"]).has_dropout or (device == "cpu" and s["batch"] * s.get("workers", 1) > SMALL):
        return None
    same = ("data", "model", "batch", "workers", "path", "precision")
    return canonical({name: s.get(name) for name in same} | {"algorithm": s["algorithm"]["name"]})


TRAIN = Experiment(
    lazily("suite.training.loop:train"),
    seconds,
    data,
    memory,
    pack,
    together=lazily("suite.runner.packing:train_together"),
    measure=lazily("suite.runner.autotune:measure_training"),
    pilot=lazily("suite.runner.pilot:training"),
)
