"""Training settings of Crossbow's figures at each profile, as plain run specifications.

What the paper prints stands in :mod:`paper_figures.crossbow.printed`. Rates, momenta, weight decays and most
batch sizes are inside pictures; they are taken from the authors' scripts (lsds/Crossbow d4441b35,
scripts/benchmarks) and marked where they differ.

Replicas, not devices, make the statistics: g GPUs with m learners each are k = g * m workers of one run.
"""

from __future__ import annotations

from typing import Any, Literal

from suite.spec import RunSpec

Method = Literal["sma", "ea-sgd", "s-sgd"]

SEEDS = {"reduced": (0, 1, 2), "paper": (0, 1, 2, 3, 4)}
LENET_LEARNERS = (1, 4, 8, 16)
LENET_TARGET = 0.93  # share correct, at the reduced scale; 0.99 in the paper
LENET_IMAGES = 4000  # a fixed subset of MNIST's 60,000 training images at the reduced scale
LENET_BATCH = 16
# Epochs of a reduced run: about 100 turns more than the slowest pilot run needed to reach 0.93.
LENET_EPOCHS = {1: 6, 4: 8, 8: 10, 16: 16}
CENTRE_MOMENTUM = 0.9  # sma.cu's constant when replicas have momentum
LONE_ALPHA = 0.1  # of one learner: 1/k = 1 would swap replica and centre; the authors' scripts have 0.1


def algorithm(method: Method, learners: int, *, tau: int = 1) -> dict[str, Any]:
    """SMA and EA-SGD with alpha = 1/k (0.1 for one learner), or the mean gradient of all learners."""
    if method == "s-sgd":
        return {"name": "sgd"}
    momentum = CENTRE_MOMENTUM if method == "sma" else 0.0
    alpha = LONE_ALPHA if learners == 1 else 1 / learners
    return {"name": "crossbow", "alpha": alpha, "momentum": momentum, "tau": tau}


def lenet(method: Method, learners: int, seed: int, *, tau: int = 1) -> RunSpec:
    """LeNet on 4,000 images of MNIST at the reduced scale: all methods read the same batches at the same rate.

    lenet.sh has rate 0.001 without momentum for up to 100 epochs; 0.01 and 0.9 reach the target in a few.
    """
    turns = LENET_IMAGES // (LENET_BATCH * learners)
    return RunSpec(
        "train",
        {
            "data": {"name": "mnist", "transform": "scale", "subset": LENET_IMAGES},
            "model": {"name": "crossbow_lenet"},
            "algorithm": algorithm(method, learners, tau=tau),
            "descent": {"rule": "caffe", "momentum": 0.9, "decay": 1e-4},
            "rate": 0.01,
            "batch": LENET_BATCH,
            "workers": learners,
            "order": {"kind": "shuffled", "share": "pool"},
            "updates": turns * LENET_EPOCHS[learners],
            "evaluate": {"every": turns, "train_examples": 1000},
            "record": {"every": 5},
        },
        seed,
    )

NETWORKS = {
    "crossbow_lenet": "LeNet",
    "crossbow_resnet32": "ResNet-32",
    "crossbow_vgg16": "VGG-16",
    "crossbow_resnet50": "ResNet-50",
}
