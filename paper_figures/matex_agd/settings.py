"""What the training runs of Table 1 are made of: one function per data set, plain values only.

Effective batch, solver and multipliers are the Caffe defaults of the network at hand, as in the paper. The
serial row reads one stream in a fixed cycle; the others give each of four workers a contiguous part of the data
in stored order, from which nothing is ever exchanged (section 5.1). How many devices Table 1 had is not printed: four
are our choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suite.models.settings import caffe, narrow_alexnet
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
WHOLE_CHECKPOINTS = 9  # of the stand-in's whole training, whose rate drops at every second

# caffe/examples/cifar10 and mnist: base rate, momentum and decay of cifar10_quick and lenet_solver
CIFAR = caffe("caffe_cifar_quick", 0.004, 0.001, data={"name": "cifar10", "transform": "mean-image"})
MNIST = caffe("caffe_lenet", 0.0005, 0.01, data={"name": "mnist", "transform": "scale"})
# caffe/models/bvlc_alexnet: base rate, momentum, decay and crop
ALEXNET = caffe("caffe_alexnet", 0.0005, 0.01, side=256, crop=227)
# The stand-in for it: an eighth as wide, on CIFAR-100 enlarged. Rate, momentum and decay are AlexNet's, its batch a
# quarter and its schedule a fiftieth of AlexNet's. Both, and the length of early training, were chosen on serial
# training alone, with seeds that are not among the runs.
NARROW = narrow_alexnet(0.01)
NARROW_BATCH, SHORTER = 64, 50


def scheduled(shorter: float) -> dict[str, Any]:
    """AlexNet's 450,000 updates, its rate dropping tenfold every 100,000, so many times shorter."""
    updates, step = round(450_000 / shorter), round(100_000 / shorter)
    drops = [[step * k, 0.1**k] for k in range(1, 5)]
    return {"updates": updates, "drops": drops, "evaluate": {"every": updates // WHOLE_CHECKPOINTS}}


# What may explain the stand-ins' loss at the end, as times the rate, momentum and what differs beside: momentum, left
# out at the rate whose steps add up to as much; the rate, at a third; and a schedule that drops it before a delayed
# training has come as far as a serial one: the rate never drops, or the schedule is four times as long, 46 epochs,
# half of the paper's.
REMEDIES: Mapping[str, tuple[float, float, Mapping[str, Any]]] = {
    "plain": (10.0, 0.0, {}),
    "slower": (1 / 3, 0.9, {}),
    "constant": (1.0, 0.9, {"drops": []}),
    "longer": (1.0, 0.9, scheduled(SHORTER / 4)),
}
EFFECTIVE_BATCH = {"caffe_alexnet": 256, "caffe_googlenet": 32}  # of bvlc_alexnet and bvlc_googlenet
VALIDATION = 50_000
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


def imagenet_row(name: str, updates: int, every: int, **more: Any) -> RunSpec:
    """The same on ImageNet with the paper's network; the paper has one run of each."""
    made = row(name, ALEXNET, EFFECTIVE_BATCH["caffe_alexnet"], updates, 0, **more)
    kept = {key: value for key, value in made.settings.items() if key != "order"}
    evaluate = {"every": every, "examples": VALIDATION}
    return RunSpec("matex_agd/imagenet", {**kept, "evaluate": evaluate, "record": {"every": 10}}, 0)


def table1(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Early training.

    ``paper``: AlexNet on ImageNet, 5000 batches of 256, the paper's own rows; it needs ImageNet (``data list``
    says in which layout), and a user without it has the proxy of ``reduced``. ``reduced``: a narrow AlexNet on
    CIFAR-100, five seeds, until serial training comes to some two fifths of its accuracy at the end; in the paper
    it comes to three tenths. ``smoke``: 40 updates of LeNet on the embedded digits.
    """
    if profile == "paper":
        return {name: (imagenet_row(name, 5000, 1000),) for name in LABELS}
    if profile == "smoke":
        return {name: (row(name, DIGITS, 64, 40, 0),) for name in LABELS}
    return {name: tuple(row(name, NARROW, NARROW_BATCH, 1000, seed) for seed in range(5)) for name in LABELS}


def quick(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """The first stand-in for Table 1, ``reduced`` alone: 500 updates of CIFAR-10 quick, three seeds a row."""
    if profile != "reduced":
        return {}
    return {f"quick {name}": tuple(row(name, CIFAR, 100, 500, seed) for seed in range(3)) for name in LABELS}


TRAINED = ("serial", "agd1", "agd2", "agd3")
MORE_SEEDS = ("serial", "sgd", "agd3")  # of the stand-in's whole training: three did not tell a delay's cost
REMEDIED = (
    *(("plain", "serial"), ("plain", "agd3"), ("slower", "agd3")),
    *((remedy, name) for remedy in ("constant", "longer") for name in ("serial", "agd3")),
)


def whole_training(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Training to the end.

    ``paper``: the 450,000 updates of bvlc_alexnet on ImageNet, whose rate drops tenfold every 100,000.
    ``reduced``: the narrow AlexNet on CIFAR-100 by the same schedule, a fiftieth as long, and serial training and a
    delay of three by one a twelfth as long; three seeds a row, and five of those that ``MORE_SEEDS`` names.
    Synchronous SGD there tells what the workers' own parts of the data cost from what the delay does.
    """
    if profile == "smoke":
        return {}
    if profile == "paper":
        drops = scheduled(1)["drops"]
        return {name: (imagenet_row(name, 450_000, 10_000, drops=drops),) for name in TRAINED}
    rows = lambda name, problem, seeds=3, **more: tuple(
        row(name, problem, NARROW_BATCH, seed=seed, **{**scheduled(SHORTER), **more}) for seed in range(seeds)
    )
    remedied = {
        f"{remedy} {name}": rows(name, changed(NARROW, remedy), **REMEDIES[remedy][2]) for remedy, name in REMEDIED
    }
    return {name: rows(name, NARROW, 5 if name in MORE_SEEDS else 3) for name in LABELS} | remedied


def changed(problem: Mapping[str, Any], remedy: str) -> dict[str, Any]:
    """A problem at the rate and momentum of one of the REMEDIES."""
    times, momentum, _ = REMEDIES[remedy]
    return {**problem, "rate": times * problem["rate"], "descent": {**problem["descent"], "momentum": momentum}}


def lenet_row(name: str, problem: Mapping[str, Any], seed: int) -> RunSpec:
    """600 updates of LeNet on MNIST, with a last drop of the rate."""
    return row(name, problem, 64, 600, seed, drops=[[450, 0.1]])


def lenet(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """The first stand-in for it, ``reduced`` alone: 600 updates of LeNet on MNIST, with a last drop of the rate."""
    if profile != "reduced":
        return {}
    rows = lambda name, problem: tuple(lenet_row(name, problem, seed) for seed in range(3))
    found = {f"lenet {name}": rows(name, MNIST) for name in TRAINED}
    return found | {f"lenet plain {name}": rows(name, changed(MNIST, "plain")) for name in TRAINED}


# Rates between which the largest lies at which LeNet trains, found with seed 101: five each, a factor of 1.4 apart;
# with momentum, and without
LARGEST: Mapping[str, float] = {"serial": 0.128, "agd1": 0.064, "agd2": 0.016, "agd3": 0.016}
LARGEST_PLAIN: Mapping[str, float] = {"serial": 0.4, "agd1": 0.2, "agd2": 0.2, "agd3": 0.1}


def lenet_rates(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """The same trainings of LeNet at five rates, by delay, ``reduced`` alone: how far a delay lowers the largest."""
    if profile != "reduced":
        return {}
    rates = lambda problem, largest: {
        name: tuple(
            lenet_row(name, {**problem, "rate": round(largest[name] * 0.5 ** (at / 2), 5)}, seed)
            for seed in range(3)
            for at in range(5)
        )
        for name in TRAINED
    }
    found = {f"rates {name}": specs for name, specs in rates(MNIST, LARGEST).items()}
    plain = rates(changed(MNIST, "plain"), LARGEST_PLAIN)
    return found | {f"rates plain {name}": specs for name, specs in plain.items()}


GAP = RunSpec("matex_agd/serial_gap", {"problem": DIGITS, "batch": 64, "updates": 10, "every": 2, "seeds": 5})
COMPUTE = RunSpec(  # the effective batch of each network on one device: nothing is communicated
    "matex_agd/compute",
    {
        "model": "caffe_googlenet",
        "beside": "caffe_alexnet",
        "batches": [EFFECTIVE_BATCH["caffe_googlenet"], EFFECTIVE_BATCH["caffe_alexnet"]],
        "repeats": 5,
    },
)
