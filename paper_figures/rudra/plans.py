"""Specifications of protocols without gradients, cost models and throughput; groups of runs by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from paper_figures.rudra import settings
from paper_figures.rudra.settings import BATCHES, IMAGENET_CONSTANTS, JITTER, LEARNERS, Configuration, at_profile
from reference_impls.rudra_protocol import gradients_per_update
from suite.papers.figure import Groups, RunSpec, printed, printed_value

SPLITS = (1, 2, 4, 30)  # n with 30 learners
JITTERS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
ADVERSARIAL = {"learners": 60, "batch": 4, "model_bytes": 300_000_000}
CORES_PER_NODE = 32

# Rows of Table 2, in the paper's order, and what the cost models are calibrated on.
TABLE2: tuple[Configuration, ...] = (
    (1, 4, 30), (30, 4, 30), (18, 8, 18), (10, 16, 10), (4, 32, 4), (2, 64, 2),
    (1, 8, 30), (30, 8, 30), (18, 16, 18), (10, 32, 10), (4, 64, 4), (2, 128, 2), (1, 128, 2),
    (1, 16, 30), (30, 16, 30), (18, 32, 18), (10, 64, 10), (4, 128, 4),
    (1, 32, 30), (30, 32, 30), (18, 64, 18), (1, 128, 10), (10, 128, 10),
)  # fmt: skip
TABLE3: tuple[Configuration, ...] = ((1, 4, 30), (0, 8, 30), (30, 4, 30), (0, 4, 30), (18, 8, 18))
BASELINE: Configuration = (0, 128, 1)
CALIBRATED: tuple[Configuration, ...] = (BASELINE, (1, 4, 30), (30, 4, 30), (10, 16, 10), (2, 128, 2), (1, 32, 30))
PRINTED = {
    BASELINE: ("rudra/table3/baseline-error", "rudra/table3/baseline-time"),
    **{
        row: (f"rudra/{table}/r{at:02d}-test-error", f"rudra/{table}/r{at:02d}-training-time")
        for table, rows in (("table3", TABLE3), ("table2", TABLE2))
        for at, row in enumerate(rows, 1)
    },
}
"""Where the error and the time of a configuration are printed; rows of Table 3 that Table 2 has stand there."""


def printed_error(row: Configuration) -> float:
    """The printed test error in %."""
    return printed_value(PRINTED[row][0])


def printed_seconds(row: Configuration) -> float:
    """The printed time of 140 epochs."""
    return printed_value(PRINTED[row][1])


ImageNetRow = tuple[str, int, int, int]  # architecture, n, mu, lambda
TABLE4: dict[str, ImageNetRow] = {
    "base-hardsync-time": ("base", 0, 16, 18),
    "base-softsync-time": ("base", 1, 16, 18),
    "adv-softsync-time": ("adv", 1, 4, 54),
    "adv-star-softsync-time": ("adv*", 1, 4, 54),
    "mu8-lambda54-time": ("adv*", 1, 8, 54),
    "baseline-hours": ("base", 0, 256, 1),
}
CALIBRATED4 = ("base-softsync-time", "adv-softsync-time", "adv-star-softsync-time", "mu8-lambda54-time")


def clock(n: int, learners: int = 30, jitter: float = JITTER, gradients: int = 60_000, slow: float = 1.0) -> RunSpec:
    """The integer protocol; 20 gradients of each learner settle it."""
    return _protocol(n, learners, gradients, clock={"jitter": jitter, **({"slow": slow} if slow != 1 else {})})


def messages(n: int, batch: int, learners: int = 30, gradients: int = 60_000) -> RunSpec:
    """Rudra-base under the CIFAR-10 network, message by message."""
    return _protocol(n, learners, gradients, batch=batch, server=settings.cifar_server(learners))


def imagenet_messages(architecture: str) -> RunSpec:
    """One of the three systems under the 289 MB network, at (1, 4, 54) of Table 4."""
    return _protocol(1, 54, 20_000, batch=4, server=settings.imagenet_server(architecture, **IMAGENET_CONSTANTS))


def _protocol(n: int, learners: int, gradients: int, **kind: Any) -> RunSpec:
    each = gradients_per_update(learners, n)
    updates, warm_up = gradients // each, max(1, 20 * learners // each)
    return RunSpec("rudra/protocol", {"learners": learners, "n": n, "updates": updates, "warm_up": warm_up, **kind})


def cifar_times() -> RunSpec:
    """Calibration on six rows and prediction of the whole grid."""
    grid = [[n, batch, learners] for learners in LEARNERS for n in sorted({0, 1, learners}) for batch in BATCHES]
    return RunSpec(
        "rudra/cifar-times",
        {
            "calibrate": [[*row, printed_seconds(row)] for row in CALIBRATED],
            "predict": grid,
            "rounds": 24,
            "images": settings.EPOCHS * settings.TRAINING_IMAGES,
        },
    )


def imagenet_times() -> RunSpec:
    """Calibration on four times; prediction of Table 4, of two systems beside it, and of Table 1."""
    rows = [*TABLE4.values(), ("adv", 1, 8, 54), ("base", 1, 8, 54)]
    return RunSpec(
        "rudra/imagenet-times",
        {
            "calibrate": [[*TABLE4[name], *printed(f"rudra/table4/{name}")] for name in CALIBRATED4],
            "predict": [list(row) for row in rows],
            "overlap": ADVERSARIAL,
            "images": 1_200_000,
            "rounds": 16,
        },
    )


def systems(seed: int, *, loaded: bool) -> RunSpec:
    """The three systems as processes, whose learners sleep to compute.

    Fewer machines than in the adversarial case, filled as there. A message takes as large a share of a gradient's
    time as there, or, *loaded*, so much longer that as much travels over the root's link in that time.
    """
    learners, numbers, seconds = 3 * settings.LEARNERS_PER_NODE, 500_000, 1.0
    gradient = IMAGENET_CONSTANTS["per_call"] + IMAGENET_CONSTANTS["per_example"] * ADVERSARIAL["batch"]
    message = ADVERSARIAL["model_bytes"] / IMAGENET_CONSTANTS["bandwidth"] / gradient  # share of a gradient's time
    message *= ADVERSARIAL["learners"] / learners if loaded else 1
    return RunSpec(
        "rudra/systems",
        {
            "systems": ["base", "adv", "adv*"],
            "n": 1,
            "learners": learners,
            "per_leaf": settings.LEARNERS_PER_NODE,
            "numbers": numbers,
            "seconds": seconds,
            "jitter": JITTER,
            "bytes_per_second": round(4 * numbers / (message * seconds)),
            "updates": 30,
            "settle": 6,
            "patience": 60,
        },
        seed,
    )


def system_groups(profile: str) -> Groups:
    """Needs root and Linux, and minutes of sleep, so it is no part of ``smoke``."""
    if profile == "smoke":
        return {}
    return {
        "processes": tuple(systems(seed, loaded=True) for seed in range(9)),
        "processes, paper's pace": tuple(systems(seed, loaded=False) for seed in range(3)),
    }


def cifar_left_out(profile: str) -> Groups:
    """Each of the six calibration rows predicted from the five others, from the start that calibration takes."""
    return left_out(profile, "cifar", cifar_times(), settings.CIFAR_START)


def imagenet_left_out(profile: str) -> Groups:
    """Each of the four times predicted from the three others, which do not determine four constants.

    So the fits begin where calibration does, and with the speed of gradients or of the network halved or doubled.
    """
    per_call, per_example, bandwidth, memory = settings.IMAGENET_START
    slower = [(c * per_call, c * per_example, bandwidth, memory) for c in (0.5, 2)]
    wider = [(per_call, per_example, c * bandwidth, c * memory) for c in (0.5, 2)]
    return left_out(profile, "imagenet", imagenet_times(), settings.IMAGENET_START, *slower, *wider)


def left_out(profile: str, model: str, fitted: RunSpec, *starts: Sequence[float]) -> Groups:
    """A leave-one-out of a cost model: minutes, so not at smoke."""
    if profile == "smoke":
        return {}
    same = {name: fitted.settings[name] for name in ("calibrate", "rounds", "images")}
    return {"left out": (RunSpec("rudra/leave-one-out", {"model": model, "starts": list(starts), **same}),)}


# Matrix products and the CIFAR-10 network at mu = 4 and 128, alternating.
THROUGHPUT = RunSpec("rudra/throughput", {"batches": [4, 128], "repetitions": 9, "examples": 128, "width": 1024})


# Groups of runs that several artifacts share, by the names their quantities know them by.


label = str  # of a configuration: the paper's (sigma, mu, lambda), with n for sigma


def training_groups(profile: str, configurations: Iterable[Configuration]) -> dict[str, tuple[RunSpec, ...]]:
    """Groups of the configurations that the profile runs."""
    found = {label(c): at_profile(c, profile) for c in configurations}
    return {name: specs for name, specs in found.items() if specs}


def modulation_groups(profile: str) -> Groups:
    """30-softsync at mu = 128 with both rates; 4-softsync too at full size."""
    groups = {}
    for n, suffix in ((30, ""), (4, " of 4-softsync")):
        if divided := at_profile((n, 128, 30), profile):
            groups[f"alpha0/{n}"] = divided
            groups[f"alpha0{suffix}"] = at_profile((n, 128, 30), profile, modulated=False)
    return groups


def tree_groups() -> Groups:
    """adv and adv* at the configuration of Table 4."""
    return {
        "adv": (imagenet_messages("adv"),),
        "adv*": (imagenet_messages("adv*"),),
        "times": (imagenet_times(),),
    }
