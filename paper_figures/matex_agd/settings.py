"""What the training runs of Table 1 are made of: one function per data set, plain values only.

Effective batch, solver and multipliers are the Caffe defaults of the network at hand, as in the paper. The
serial row reads one stream in a fixed cycle; the others give each of four workers a contiguous part of the data
in stored order, from which nothing is ever exchanged (section 5.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suite.spec import RunSpec

WORKERS = 4
DELAYS = {"sgd": 0, "agd1": 1, "agd2": 2, "agd3": 3}
LABELS = {
    "serial": "serial, 1 device",
    "sgd": "SGD",
    "agd1": "AGD, 1 comm",
    "agd2": "AGD, 2 comm",
    "agd3": "AGD, 3 comm",
}
CHECKPOINTS = 5  # Table 1 prints accuracy at five equidistant batches

CIFAR: Mapping[str, Any] = {  # caffe/examples/cifar10: base rate, momentum and decay of cifar10_quick
    "data": {"name": "cifar10", "transform": "mean-image"},
    "model": {"name": "caffe_cifar_quick"},
    "descent": {"rule": "caffe", "momentum": 0.9, "decay": 0.004, "multipliers": True},
    "rate": 0.001,
}
MNIST: Mapping[str, Any] = {  # caffe/examples/mnist: base rate, momentum and decay of lenet_solver
    "data": {"name": "mnist", "transform": "scale"},
    "model": {"name": "caffe_lenet"},
    "descent": {"rule": "caffe", "momentum": 0.9, "decay": 0.0005, "multipliers": True},
    "rate": 0.01,
}
DIGITS: Mapping[str, Any] = {**MNIST, "data": {"name": "digits", "transform": "unit"}}


def row(name: str, problem: Mapping[str, Any], batch: int, updates: int, seed: int, **more: Any) -> RunSpec:
    """A training run of one row of Table 1 with effective batch ``batch`` and five checkpoints."""
    serial = name == "serial"
    workers = 1 if serial else WORKERS
    settings = {
        **problem,
        "algorithm": {"name": "matex_agd", "delay": 0 if serial else DELAYS[name]},
        "workers": workers,
        "batch": batch // workers,
        "order": {"kind": "fixed-cycle" if serial else "partitioned"},
        "updates": updates,
        "evaluate": {"every": updates // CHECKPOINTS},
        **more,
    }
    return RunSpec("train", settings, seed)


def table1(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Early training, three seeds a row: 500 updates of CIFAR-10 quick; 40 of LeNet on the embedded digits."""
    if profile == "paper":  # the proxy's own full schedule: eight epochs, as cifar10_quick has them
        return {name: tuple(row(name, CIFAR, 100, 4000, seed) for seed in range(3)) for name in LABELS}
    if profile == "smoke":
        return {name: (row(name, DIGITS, 64, 40, 0),) for name in LABELS}
    return {name: tuple(row(name, CIFAR, 100, 500, seed) for seed in range(3)) for name in LABELS}


def whole_training(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Training to the end, with a last drop of the rate: 600 updates of LeNet on MNIST, three seeds a row."""
    if profile == "smoke":
        return {}
    drop = {"drops": [[450, 0.1]]}
    rows = ("serial", "agd1", "agd2", "agd3")
    return {name: tuple(row(name, MNIST, 64, 600, seed, **drop) for seed in range(3)) for name in rows}


GAP = RunSpec("matex_agd/serial_gap", {"problem": DIGITS, "batch": 64, "updates": 10, "every": 2, "seeds": 5})
