"""The runs that several artifacts read, as plain values: the searches of Fig. 1, the checks on digits, the loop.

The paper prints no threshold. Ours are halvings of the loss of a uniform guess, ln(classes): a half, a quarter,
an eighth, ... ; at ``reduced`` as far down as the largest batch gets within about two minutes of one CPU core.
On CIFAR that is the first halving, so quarter steps towards it give several thresholds there too.

The searches at ``reduced`` read one sample of 500 examples, the same for all. Lower thresholds are looked for in runs
of their own, in which every seed reads a sample of its own: the sample's error is then part of the scatter of seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from suite.papers.figure import Groups, RunSpec

SHARE = 0.2  # of the data in each of the two samples on which losses are measured
SAMPLED_AT_REDUCED = 500  # examples of a sample that a test reads at reduced; the paper reads all 12,000
GROWTH = 0.01  # of the test grid at reduced
PAPER_HALVINGS = (1, 2, 3, 4)
DECAY = 1e-4  # light regularisation; the constant is lost in the text


@dataclass(frozen=True)
class Row:
    """A curve of Figure 1: a row of Table 1 at one of its learning rates.

    ``halvings`` are the thresholds at reduced, ln(``guess``) / 2^h, looked for at all ``powers`` by ``seeds`` seeds;
    none: no runs at reduced. On MNIST, where a search is cheap, these are as many seeds as the paper's. ``lower`` are
    thresholds below them, likewise at all powers, with samples of the seeds' own. ``sizes`` are the batch sizes at
    reduced where they are not all powers, ``first_seed`` is the first seed there.
    """

    name: str
    data: str
    labels: str
    model: str
    rate: float | None  # None: Adam at its default rate
    table: int  # row of Table 1, from 1
    largest: int = 1024
    smallest: int = 1
    guess: int = 10
    classes: int = 10
    halvings: tuple[float, ...] = ()
    lower: tuple[float, ...] = ()
    seeds: int = 10
    validation: tuple[float, ...] = ()  # halvings also looked for in the validation loss
    sizes: tuple[int, ...] = ()
    first_seed: int = 0
    transform: str = "standardise-global"  # of the pixels

    @property
    def powers(self) -> tuple[int, ...]:
        """All batch sizes of the paper's range: the powers of two between its ends."""
        low, high = int(math.log2(self.smallest)), int(math.log2(self.largest))
        return tuple(2**k for k in range(low, high + 1))

    @property
    def title(self) -> str:
        """The curve as a reader would call it."""
        sets = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
        networks = {
            "lenet_small": "small LeNet",
            "lenet_medium": "medium LeNet",
            "lenet_large": "large LeNet",
            "cifar_lenet": "LeNet",
            "vgg_medium": "medium VGG",
            "vgg_large": "large VGG",
            "resnet20": "ResNet-20",
        }
        classes = " even/odd" if self.labels == "parity" else ""
        pixels = ", pixels / 255" if self.transform == "unit" else ""
        rate = f"rate {self.rate:g}" if self.rate else "Adam"
        return f"{sets[self.data]}{classes}, {networks[self.model]}, {rate}{pixels}"

    def threshold(self, halving: float) -> float:
        """ln(guess) / 2^halving nats, rounded to what is printed in figures."""
        return round(math.log(self.guess) / 2**halving, 4)

    def thresholds(self, profile: str, *, lower: bool = False) -> tuple[float, ...]:
        """The thresholds of the training loss at a profile, or the lower ones searched apart, highest first."""
        own = () if lower else PAPER_HALVINGS
        halvings = own if profile == "paper" else self.lower if lower else self.halvings
        return tuple(self.threshold(h) for h in halvings)


CIFAR100: dict[str, Any] = {"smallest": 16, "guess": 100, "classes": 100}
# The larger networks at reduced: the LeNet's first threshold on these data, the middle of the range.
LARGER: dict[str, Any] = {"sizes": (16, 32, 64, 128, 256), "seeds": 3, "halvings": (0.5,)}
LARGER_100: dict[str, Any] = {**LARGER, **CIFAR100, "halvings": (0.125,)}
# A second look at five curves on which three seeds left the law open; at Adam's, the widest, with more seeds.
OPEN: dict[str, Any] = {"seeds": 5}

ROWS: tuple[Row, ...] = (
    Row("mnist_small-lr0p01", "mnist", "digits", "lenet_small", 0.01, 1, halvings=(1, 2, 3), lower=(4,)),
    Row("mnist_medium-lr0p01", "mnist", "digits", "lenet_medium", 0.01, 2, halvings=(1, 2, 3)),
    Row("mnist_medium-lr0p05", "mnist", "digits", "lenet_medium", 0.05, 2, halvings=(1, 2, 3), lower=(4, 5),
        validation=(3,)),
    Row("mnist_evenodd-lr0p05", "mnist", "parity", "lenet_medium", 0.05, 3, guess=2, halvings=(1, 2), lower=(3, 4)),
    Row("mnist_large-lr0p01", "mnist", "digits", "lenet_large", 0.01, 4, halvings=(1, 2)),
    Row("cifar10_small-lr0p05", "cifar10", "classes", "cifar_lenet", 0.05, 5, halvings=(0.5, 0.75, 1), seeds=3),
    Row("cifar10_medium-lr0p01", "cifar10", "classes", "vgg_medium", 0.01, 6, **LARGER),
    Row("cifar10_medium-lr0p05", "cifar10", "classes", "vgg_medium", 0.05, 6, **LARGER),
    Row("cifar10_medium-adam", "cifar10", "classes", "vgg_medium", None, 6, **LARGER | {"seeds": 8}),
    Row("cifar10_large-lr0p025", "cifar10", "classes", "vgg_large", 0.025, 7, **LARGER | OPEN),
    Row("cifar10_resnet-lr0p05", "cifar10", "classes", "resnet20", 0.05, 8, **LARGER | OPEN),
    Row("cifar100_small-lr0p05", "cifar100", "classes", "cifar_lenet", 0.05, 9, **CIFAR100,
        halvings=(0.125, 0.25, 0.375), seeds=3),
    Row("cifar100_medium-lr0p05", "cifar100", "classes", "vgg_medium", 0.05, 10, **LARGER_100 | OPEN),
    Row("cifar100_large-lr0p025", "cifar100", "classes", "vgg_large", 0.025, 11, **LARGER_100),
    Row("cifar100_large-lr0p05", "cifar100", "classes", "vgg_large", 0.05, 11, **LARGER_100 | OPEN),
)  # fmt: skip
# What the paper does not print, tried the other way, on seeds that no other search has.
VARIANTS: tuple[Row, ...] = (
    Row("mnist_medium-lr0p05-unit", "mnist", "digits", "lenet_medium", 0.05, 2, halvings=(1, 2, 3), transform="unit",
        sizes=(1, 2, 4, 16, 64, 256), first_seed=10),
    Row("mnist_evenodd-lr0p05-unit", "mnist", "parity", "lenet_medium", 0.05, 3, guess=2, halvings=(1, 2),
        transform="unit", sizes=(1, 2, 4, 16, 64, 256), seeds=20, first_seed=10),
    Row("cifar10_small-lr0p05-unit", "cifar10", "classes", "cifar_lenet", 0.05, 5, halvings=(0.5, 0.75, 1),
        transform="unit", sizes=(1, 2, 4, 16, 64, 256), seeds=5, first_seed=10),
)  # fmt: skip
BY_NAME: Mapping[str, Row] = {row.name: row for row in (*ROWS, *VARIANTS)}

PAPER_SEEDS = {"mnist": 10, "cifar10": 1, "cifar100": 1}
PAPER_GRID = {"mnist": 1, "cifar10": 100, "cifar100": 100}  # updates between two tests
LIMIT = 20_000  # updates after which a threshold is censored at reduced
PAPER_EPOCHS = 200  # likewise at paper
CHECKED = ("mnist_medium-lr0p05", 256, 2)  # tested after every update on the whole sample: row, batch, seeds
# Tested after every update, on the sample of the others: at these sizes the loss swings from one update to the next,
# and a grid of tests passes over the first that lies below a threshold. To the lowest threshold it found 1.05 times
# [1.00, 1.11] the updates at M = 2 and 1.01 times [0.99, 1.04] at M = 8; at M = 256, by CHECKED, 0.96 [0.91, 1.01].
SWINGING = {"mnist_medium-lr0p05": (1, 2, 4, 8)}


# How the loss of a search is tested.
BY_GRID: Mapping[str, Any] = {"sample": SAMPLED_AT_REDUCED, "growth": GROWTH}
EVERY_UPDATE: Mapping[str, Any] = {"sample": SAMPLED_AT_REDUCED, "growth": 0.0}
WHOLE_SAMPLE: Mapping[str, Any] = {"sample": None, "growth": 0.0}  # after every update too


def monitors(row: Row, profile: str, lower: bool) -> dict[str, list[float]]:
    """The thresholds of a curve's losses; with ``lower`` those below them alone."""
    halvings, validation = (row.lower, ()) if lower else (row.halvings, row.validation)
    if profile == "paper":
        halvings = validation = PAPER_HALVINGS
    found = {"training": halvings, "validation": validation}
    return {loss: [row.threshold(h) for h in several] for loss, several in found.items() if several}


def sweep_spec(
    row: Row, batch: int, seed: int, profile: str, *, lower: bool = False, tested: Mapping[str, Any] = BY_GRID
) -> RunSpec:
    """The search of one point of one curve; for its ``lower`` thresholds, each seed on a sample of its own."""
    paper, mnist = profile == "paper", row.data == "mnist"
    examples = 60_000 if mnist else 50_000
    data = {"name": row.data, "labels": row.labels, "transform": row.transform}
    settings: dict[str, Any] = {
        "data": data | ({"size": 32} if mnist else {}),
        "model": {"name": row.model} | ({"classes": row.classes} if row.classes != 10 else {}),
        "descent": {"rule": "torch" if row.rate else "adam", "decay": DECAY},
        "rate": row.rate or 0.001,
        "batch": batch,
        "share": SHARE,
        "every": PAPER_GRID[row.data] if paper else 1,
        "limit": max(LIMIT, PAPER_EPOCHS * examples // batch) if paper else LIMIT,
        "monitors": monitors(row, profile, lower),
        **(WHOLE_SAMPLE if paper else tested),
    }
    return RunSpec("inverse_law/sweep", settings | ({"sample_of": "each seed"} if lower else {}), seed)


@cache
def curve_specs(row: Row, profile: str, *, lower: bool = False) -> tuple[RunSpec, ...]:
    """All searches of a curve at a profile, or those for its ``lower`` thresholds; none where it has none."""
    if profile == "paper":
        sizes, seeds = row.powers, range(0 if lower or row in VARIANTS else PAPER_SEEDS[row.data])
    elif profile == "reduced" and (row.lower if lower else row.halvings):
        sizes, seeds = row.sizes or row.powers, range(row.first_seed, row.first_seed + row.seeds)
    else:
        sizes, seeds = (), range(0)
    return tuple(sweep_spec(row, batch, seed, profile, lower=lower) for batch in sizes for seed in seeds)


DIGITS = {
    "data": {"name": "digits", "labels": "digits", "transform": "standardise-global"},
    "model": {"name": "digits_lenet"},
    "descent": {"rule": "torch", "decay": 0.0},
    "rate": 0.05,
    "share": 0.2,
    "sample": None,
}
NOISE = RunSpec(
    "inverse_law/noise",
    {**DIGITS, "batch": 16, "warm": 20, "batches": [1, 4, 16, 64, 256], "draws": 120},
)
SPLIT = tuple(
    RunSpec(
        "inverse_law/sweep",
        {
            **DIGITS,
            "batch": 32,
            "workers": learners,
            "precision": "float64",
            "growth": 0.02,
            "every": 1,
            "limit": 400,
            "monitors": {"training": [0.4]},
        },
    )
    for learners in (1, 2, 4)
)
LOOP = RunSpec(
    "inverse_law/loop",
    {
        "batches": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
        "converge": [2, 16, 256],
        "seeds": [0, 1, 2],
        "rate": 0.05,
        "threshold": 0.3,
        "hidden": 512,
        "share": 0.2,
        "growth": 0.01,
        "limit": 2_000,
        "rounds": 4,
        "repeats": 3,
    },
)


def curve_runs(profile: str) -> Groups:
    """A group of runs per point of every curve that the profile has: CURVE/M, CURVE/M/lower and CURVE/M/every."""
    groups: dict[str, tuple[RunSpec, ...]] = {}
    for row in BY_NAME.values():
        for lower, ending in ((False, ""), (True, "/lower")):
            for spec in curve_specs(row, profile, lower=lower):
                name = f"{row.name}/{spec.settings['batch']}{ending}"
                groups[name] = (*groups.get(name, ()), spec)
    for name, batches in SWINGING.items() if profile == "reduced" else ():
        seeds = [spec.seed for spec in groups[f"{name}/{batches[0]}"]]
        for batch in batches:
            specs = tuple(sweep_spec(BY_NAME[name], batch, seed, profile, tested=EVERY_UPDATE) for seed in seeds)
            groups[f"{name}/{batch}/every"] = specs
    return groups


def law_runs(profile: str) -> Groups:
    """Curves, the small experiments on noise and learners, and two runs that check grid and sample."""
    groups = {**curve_runs(profile), "noise": (NOISE,), "learners": SPLIT}
    if profile == "reduced":
        name, batch, seeds = CHECKED
        checked = (sweep_spec(BY_NAME[name], batch, seed, profile, tested=WHOLE_SAMPLE) for seed in range(seeds))
        groups["every-update"] = tuple(checked)
    return groups


def loop_runs(profile: str) -> Groups:
    """The closed loop of the method, the same at every profile."""
    return {"loop": (LOOP,)}
