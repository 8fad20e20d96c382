"""Every setting of Rudra's runs: the paper's machine, the configurations (n, mu, lambda), and training by them.

The paper's machine stands here as numbers: who shares a node, and the constants of the cost models. The constants
are the outcome of the experiments ``rudra/cifar-times`` and ``rudra/imagenet-times``, which calibrate them on a few
stated rows of the paper's tables and predict the others; a test repeats the calibration and compares. They stand
rounded because specifications of runs must hold plain values that do not depend on other runs.

Of training on CIFAR-10 section 4.2 prints Caffe's "full" network, momentum 0.9, base rate 0.001 for the
configuration (0, 128, 1), 140 epochs with a tenth of the rate after epochs 120 and 130, the mean image subtracted.
Not printed, taken from Caffe's example that the paper says it mimics: weight decay 0.004, the multipliers of rates
and decays, initial weights. Learners draw their batches at random with replacement, each from a stream of its own
(section 2).
"""

from __future__ import annotations

from functools import cache
from math import ceil
from typing import Any

from reference_impls.rudra_protocol import gradients_per_update, hardsync_rate, softsync_rate
from suite.models.settings import caffe
from suite.spec import RunSpec

NODES = {1: 1, 2: 1, 4: 2, 10: 4, 18: 4, 30: 8}  # footnote 4: learners to machines
JITTER = 0.05  # relative standard deviation of a gradient's time; assumed, the paper gives none
CIFAR_BYTES = 4 * 89_578
EPOCHS, TRAINING_IMAGES = 140, 50_000

# Seconds of one gradient of b examples by a learner with s learners on its machine:
# (per_call + per_example b) (1 + crowding (s - 1)).
CIFAR_SECONDS = {"per_call": 0.0041, "per_example": 0.00303, "crowding": 0.245, "jitter": JITTER}
CIFAR_UPDATE_SECONDS = 0.00118
CIFAR_START = (0.01, 0.003, 0.2, 0.001)  # per_call, per_example, crowding, update: where calibration begins
INTERCONNECT = 9.6e10  # bytes per second in one direction: half of the printed 192 GB/s, which counts both
LATENCY = 1e-6  # seconds of an empty message; assumed
MEMORY = [LATENCY, 5.12e10]  # copies within a machine: a tenth of the printed 512 GB/s; assumed


def cifar_server(learners: int) -> dict[str, Any]:
    """Settings of Rudra-base under the CIFAR-10 network."""
    return {
        "architecture": "base",
        "seconds": CIFAR_SECONDS,
        "machines": NODES[learners],
        "model_bytes": CIFAR_BYTES,
        "network": [LATENCY, INTERCONNECT],
        "memory": MEMORY,
        "update_seconds": CIFAR_UPDATE_SECONDS,
    }


IMAGENET_BYTES = 289_000_000
LEARNERS_PER_NODE = 8  # 32 cores and learners of four threads
# Constants of the ImageNet model: seconds of one gradient as above, without crowding, because all its rows fill
# their machines alike; bytes per second that a server takes in or hands out, contention included, and the same
# (memory) between a server and the learners on its machine.
IMAGENET_CONSTANTS = {"per_call": 0.6, "per_example": 0.184, "bandwidth": 3.9e9, "memory": 3.8e9}
IMAGENET_START = (0.6, 0.18, 5e9, 5e9)  # in this order


def imagenet_server(
    architecture: str, per_call: float, per_example: float, bandwidth: float, memory: float
) -> dict[str, Any]:
    """Settings of one of the three systems under the 289 MB network; its learners fill their machines."""
    settings: dict[str, Any] = {
        "architecture": architecture,
        "seconds": {"per_call": per_call, "per_example": per_example, "crowding": 0.0, "jitter": JITTER},
        "machines": 1,
        "model_bytes": IMAGENET_BYTES,
        "network": [LATENCY, bandwidth],
        "memory": [LATENCY, memory],
        "update_seconds": 0.0,
    }
    if architecture != "base":
        settings["tree"] = {"per_leaf": LEARNERS_PER_NODE, "fan_out": 8}
    return settings


BASE_RATE = 0.001
REFERENCE_BATCH = 128
LEARNERS = (1, 2, 4, 10, 18, 30)
MANY = LEARNERS[1:]  # more than one
BATCHES = (4, 8, 16, 32, 64, 128)
DROPS = ((120, 0.1), (130, 0.01))  # epochs of 140

Configuration = tuple[int, int, int]
"""(n, mu, lambda); n = 0 is hardsync. The paper writes staleness where n stands, which is the same label."""


PROTOCOLS = ("hardsync", "lambda-softsync", "1-softsync")  # the three of Figs. 6 to 8


def splitting(protocol: str, learners: int) -> int:
    """n of one of the PROTOCOLS."""
    return {"hardsync": 0, "1-softsync": 1, "lambda-softsync": learners}[protocol]


def grid(protocol: str) -> list[Configuration]:
    """The 36 configurations of a protocol."""
    return [(splitting(protocol, k), mu, k) for k in LEARNERS for mu in BATCHES]


def updates_of(epochs: float, configuration: Configuration) -> int:
    """Updates in which so many epochs are seen."""
    n, batch, learners = configuration
    return ceil(epochs * TRAINING_IMAGES / (batch * gradients_per_update(learners, n)))


def served(configuration: Configuration, updates: int, server: dict[str, Any]) -> dict[str, Any]:
    """Settings of so many updates by a configuration, whose gradients arrive as under ``server``."""
    n, batch, learners = configuration
    return {
        "algorithm": {"name": "rudra", "workers": learners, "n": n, "history": 1 if n == 0 else 3 * n + 3},
        "batch": batch,
        "workers": learners,
        "order": {"kind": "with-replacement"},
        "updates": updates,
        "record": {"every": max(1, updates // 500)},
        "server": server,
    }


@cache  # every table of the paper asks for the same rows, and freezing a specification takes its time
def training(
    configuration: Configuration,
    epochs: int,
    seeds: int = 1,
    *,
    modulated: bool = True,
    drops: bool = True,
    system: str = "base",
) -> tuple[RunSpec, ...]:
    """A training run for each seed, at the paper's rate for the protocol or, not ``modulated``, at alpha_0.

    The schedule keeps its shape when epochs are fewer: drops after 6/7 and 13/14 of them. Gradients arrive as in
    Rudra-base under the CIFAR-10 network, or in another ``system`` under the messages of the ImageNet network.
    """
    n, batch, learners = configuration
    updates = updates_of(epochs, configuration)
    if not modulated:
        rate = BASE_RATE
    elif n == 0:
        rate = hardsync_rate(BASE_RATE, learners, batch, REFERENCE_BATCH)
    else:
        rate = softsync_rate(BASE_RATE, n)
    server = cifar_server(learners) if system == "base" else imagenet_server(system, **IMAGENET_CONSTANTS)
    settings: dict[str, Any] = {
        **caffe("caffe_cifar_full", 0.004, rate, data={"name": "cifar10", "transform": "mean-image"}),
        **served(configuration, updates, server),
        "drops": [[round(at * updates / EPOCHS), factor] for at, factor in DROPS] if drops else [],
        "evaluate": {"every": ceil(updates / max(epochs, 6))},
    }
    return tuple(RunSpec("rudra/train", settings, seed) for seed in range(seeds))


# Epochs of the reduced profile. Where a claim compares two configurations, the one that is said to be better has
# as many epochs as the other or fewer, so that a short run cannot decide in its favour.
REDUCED_EPOCHS: dict[Configuration, int] = {
    (30, 128, 30): 8,
    (0, 128, 30): 8,
    (0, 128, 1): 2,
    (0, 4, 30): 2,
    (1, 4, 30): 2,
    (30, 4, 30): 2,
    (1, 32, 30): 2,
    (30, 32, 30): 2,
}


def trained_as(configuration: Configuration) -> Configuration:
    """The configuration whose runs serve this one: of hardsync's with its mu lambda, the one of the fewest learners.

    Each of their updates is the mean gradient of mu lambda examples drawn with replacement, at one rate. They differ
    in their clocks alone, and the times of a figure come from the cost model.
    """
    n, batch, learners = configuration
    if n:
        return configuration
    fewest = next(k for k in LEARNERS if batch * learners in [k * mu for mu in BATCHES])
    return 0, batch * learners // fewest, fewest


def at_profile(configuration: Configuration, profile: str, **changes: Any) -> tuple[RunSpec, ...]:
    """The runs of a configuration at a profile: 140 epochs and three seeds, or few epochs of one seed, or none."""
    if profile == "paper":
        return training(trained_as(configuration), EPOCHS, 3, **changes)
    if profile == "reduced" and configuration in REDUCED_EPOCHS:
        return training(configuration, REDUCED_EPOCHS[configuration], **changes)
    return ()
