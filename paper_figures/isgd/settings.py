"""The training settings of ISGD's figures, and which of them the paper does not print.

Printed: learning rates 0.01 (MNIST) and 0.001 (CIFAR-10), limit at three deviations, ``stop`` about 5. Not
printed, chosen here: batch 64 and 100, momentum 0.9 and weight decay 0.0005 and 0.004 with per-parameter
multipliers (Caffe's examples, which the paper says it uses), zeta equal to the learning rate.
"""

from __future__ import annotations

from typing import Any

from suite.spec import RunSpec

MNIST = {
    "data": {"name": "mnist", "transform": "scale"},
    "model": {"name": "caffe_lenet"},
    "descent": {"rule": "caffe", "momentum": 0.9, "decay": 5e-4, "multipliers": True},
    "rate": 0.01,
    "batch": 64,
}
CIFAR = {
    "data": {"name": "cifar10", "transform": "mean-image"},
    "model": {"name": "caffe_cifar_quick"},
    "descent": {"rule": "caffe", "momentum": 0.9, "decay": 4e-3, "multipliers": True},
    "rate": 0.001,
    "batch": 100,
}
DIGITS = {
    "data": {"name": "digits", "transform": "scale", "size": 28},
    "model": {"name": "digits_lenet"},
    "descent": {"rule": "caffe", "momentum": 0.9, "decay": 5e-4, "multipliers": True},
    "rate": 0.01,
    "batch": 32,
}
FIXED_CYCLE = {"kind": "fixed-cycle"}


def isgd(rate: float, **changes: Any) -> dict[str, Any]:
    """Algorithm settings of ISGD at the paper's margin and stop, zeta equal to the learning rate."""
    return {"name": "isgd", "batches": "epoch", "zeta": rate, "stop": 5, "margin": 3.0, **changes}


def train(
    base: dict[str, Any], seed: int, *, algorithm: dict[str, Any], updates: int, every: int, **more: Any
) -> RunSpec:
    """A training run: ``updates`` gradient evaluations, tested every ``every`` of them."""
    evaluate = {"every": every, **more.pop("evaluate", {})}
    return RunSpec(
        "train",
        {**base, "algorithm": algorithm, "updates": updates, "evaluate": evaluate, "order": FIXED_CYCLE, **more},
        seed,
    )


def pairs(
    base: dict[str, Any], seeds: int, updates: int, every: int, examples: int
) -> dict[str, tuple[RunSpec, ...]]:
    """SGD and ISGD with the same seeds: same initial weights, same cycle, as many gradient evaluations."""
    common: dict[str, Any] = {"updates": updates, "every": every, "evaluate": {"train_examples": examples}}
    return {
        "sgd": tuple(train(base, s, algorithm={"name": "sgd"}, **common) for s in range(seeds)),
        "isgd": tuple(train(base, s, algorithm=isgd(base["rate"]), **common) for s in range(seeds)),
    }


def mnist_pairs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Figs. 5a and 5d. Updates: 4 epochs of 938 (reduced), Caffe's 10,000 (paper)."""
    if profile == "smoke":
        return pairs(DIGITS, 2, 270, 45, 400)
    if profile == "reduced":
        return pairs(MNIST, 5, 4 * 938, 134, 5000)
    return pairs(MNIST, 10, 10_000, 100, 10_000)


def cifar_pairs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Figs. 5b and 5e. Updates: 8 epochs of 500 (reduced), 60 epochs (paper: about 80 tests of 6 s)."""
    if profile == "smoke":
        return {}
    if profile == "reduced":
        return pairs(CIFAR, 3, 8 * 500, 250, 5000)
    return pairs(CIFAR, 10, 60 * 500, 250, 10_000)


def cycles(profile: str, kind: str) -> tuple[RunSpec, ...]:
    """Figs. 1a and 1b: ten batches in a fixed cycle, 1,000 pictures each as printed for Fig. 1a."""
    sizes = {"smoke": (100, 30), "reduced": (1000, 40), "paper": (1000, 2200 if kind == "balanced" else 1700)}
    batch, epochs = sizes[profile]
    base = DIGITS if profile == "smoke" else CIFAR
    return (
        train(
            {**base, "batch": batch},
            0,
            algorithm={"name": "sgd"},
            updates=10 * epochs,
            every=10 * epochs,
            order={"kind": kind, "batches": 10},
        ),
    )


def batch_sizes(profile: str, kind: str) -> dict[str, tuple[RunSpec, ...]]:
    """Figs. 6a and 6b on one device: ISGD at each printed batch size, rate raised with its square root.

    The paper raises the rate "empirically" and prints no values.
    """
    if profile == "smoke":
        return {}
    choices: dict[str, tuple[dict[str, Any], tuple[int, ...], int]] = {
        "mnist": (MNIST, (64, 1000, 2000, 3000), 60_000),
        "cifar": (CIFAR, (100, 200, 500, 2000, 10_000), 50_000),
    }
    base, sizes, images = choices[kind]
    epochs = {"reduced": 3, "paper": 60}[profile]
    groups: dict[str, tuple[RunSpec, ...]] = {}
    for size in sizes:
        rate = base["rate"] * (size / base["batch"]) ** 0.5
        updates = epochs * -(-images // size)
        groups[f"b{size}"] = (
            train(
                {**base, "batch": size, "rate": rate},
                0,
                algorithm=isgd(rate),
                updates=updates,
                every=max(1, updates // 24),
            ),
        )
    return groups


def iterations_to_target(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Iterations of SGD until 4% test error (12% on digits) at three batch sizes and one rate."""
    base, seeds, below, limit, every = {
        "smoke": (DIGITS, 3, 0.12, 600, 5),
        "reduced": (MNIST, 10, 0.04, 3000, 20),
        "paper": (MNIST, 10, 0.04, 3000, 5),
    }[profile]
    return {
        f"b{size}": tuple(
            train(
                {**base, "batch": size},
                s,
                algorithm={"name": "sgd"},
                updates=limit,
                every=every,
                stop={"metric": "test_error", "below": below},
            )
            for s in range(seeds)
        )
        for size in (16, 64, 256)
    }
