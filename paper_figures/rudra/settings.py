"""Training runs on CIFAR-10: which configurations (n, mu, lambda) at which profile, and every setting of theirs.

Printed in section 4.2: Caffe's "full" network, momentum 0.9, base rate 0.001 for the configuration (0, 128, 1),
140 epochs with a tenth of the rate after epochs 120 and 130, the mean image subtracted. Not printed, taken from
Caffe's example that the paper says it mimics: weight decay 0.004, the multipliers of rates and decays, initial
weights. Learners draw their batches at random with replacement, each from a stream of its own (section 2).
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any

from paper_figures.rudra.machine import (
    EPOCHS,
    IMAGENET_BANDWIDTH,
    IMAGENET_MEMORY,
    IMAGENET_SECONDS,
    TRAINING_IMAGES,
    cifar_server,
    imagenet_server,
)
from suite.spec import RunSpec

BASE_RATE = 0.001
REFERENCE_BATCH = 128
LEARNERS = (1, 2, 4, 10, 18, 30)
BATCHES = (4, 8, 16, 32, 64, 128)
DROPS = ((120, 0.1), (130, 0.01))  # epochs of 140

Configuration = tuple[int, int, int]
"""(n, mu, lambda); n = 0 is hardsync. The paper writes staleness where n stands, which is the same label."""


def collect(n: int, learners: int) -> int:
    """Gradients per update."""
    return learners // max(n, 1)


def rate(n: int, batch: int, learners: int) -> float:
    """The paper's learning rate: sqrt(lambda mu / B) alpha_0 for hardsync, alpha_0 / n for n-softsync (Eq. 6)."""
    return BASE_RATE * sqrt(learners * batch / REFERENCE_BATCH) if n == 0 else BASE_RATE / n


def training(
    configuration: Configuration,
    epochs: int,
    seed: int,
    *,
    modulated: bool = True,
    drops: bool = True,
) -> RunSpec:
    """One training run. The schedule keeps its shape when epochs are fewer: drops after 6/7 and 13/14 of them."""
    n, batch, learners = configuration
    each = collect(n, learners)
    updates = ceil(epochs * TRAINING_IMAGES / (batch * each))
    settings: dict[str, Any] = {
        "data": {"name": "cifar10", "transform": "mean-image"},
        "model": {"name": "caffe_cifar_full"},
        "algorithm": {"name": "rudra", "workers": learners, "n": n, "history": 1 if n == 0 else 3 * n + 3},
        "descent": {"rule": "caffe", "momentum": 0.9, "decay": 0.004, "multipliers": True},
        "rate": rate(n, batch, learners) if modulated else BASE_RATE,
        "drops": [[round(at * updates / EPOCHS), factor] for at, factor in DROPS] if drops else [],
        "batch": batch,
        "workers": learners,
        "order": {"kind": "with-replacement"},
        "updates": updates,
        "evaluate": {"every": ceil(updates / max(epochs, 6))},
        "record": {"every": max(1, updates // 500)},
        "server": cifar_server(learners),
    }
    return RunSpec("rudra/train", settings, seed)


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


def at_profile(configuration: Configuration, profile: str, **changes: Any) -> tuple[RunSpec, ...]:
    """The runs of a configuration at a profile: 140 epochs and three seeds, or few epochs of one seed, or none."""
    if profile == "paper":
        return tuple(training(configuration, EPOCHS, seed, **changes) for seed in range(3))
    if profile == "reduced" and configuration in REDUCED_EPOCHS:
        return (training(configuration, REDUCED_EPOCHS[configuration], 0, **changes),)
    return ()


def imagenet_training(configuration: Configuration, epochs: int, seed: int) -> RunSpec:
    """Hardsync on ImageNet as section 4.2 prints it, with Caffe's AlexNet for the network it does not identify.

    The softsync runs of section 5.5 use AdaGrad with an unprinted initial rate and are not specified here.
    """
    n, batch, learners = configuration
    updates = ceil(epochs * 1_281_167 / (batch * learners))
    return RunSpec(
        "rudra/train",
        {
            "data": {"name": "imagenet", "transform": "mean-image"},
            "model": {"name": "caffe_alexnet"},
            "algorithm": {"name": "rudra", "workers": learners, "n": n, "history": 1},
            "descent": {"rule": "caffe", "momentum": 0.9, "decay": 0.0005},
            "rate": 0.01,
            "drops": [[round(15 / 30 * updates), 0.1], [round(25 / 30 * updates), 0.01]],
            "batch": batch,
            "workers": learners,
            "order": {"kind": "with-replacement"},
            "updates": updates,
            "evaluate": {"every": ceil(updates / epochs)},
            "record": {"every": 100},
            "server": imagenet_server(
                "base",
                IMAGENET_SECONDS["per_call"],
                IMAGENET_SECONDS["per_example"],
                IMAGENET_BANDWIDTH,
                IMAGENET_MEMORY,
            ),
        },
        seed,
    )
