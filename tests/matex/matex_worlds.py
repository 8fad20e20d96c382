"""Fabricated frames of MaTEx's panels: every seed, repetition and condition with a number of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from fabricated_frames import frame_of

from paper_figures.matex_agd.exchanges import ALEXNET, CASES, DELAYED, GOOGLENET, LAYER_WISE, METHODS, SHARED, SPEEDS
from paper_figures.matex_agd.settings import CHECKPOINTS, TRAINED
from paper_figures.matex_agd.table1 import ROWS, printed_table
from suite.papers.artifact import Frame

PRINTED = {row: np.array(values) for row, values in printed_table().items()}
REPEATS, ARMS = 5, ("serial", "split", "partitioned")
ENDS = {"serial": 0.541, "agd1": 0.544, "agd2": 0.538, "agd3": 0.539}


def ended(accuracies: Any) -> dict[str, Any]:
    """A training with these accuracies at its checkpoints, and one before the first update that nobody may read."""
    table = {"update": list(range(len(accuracies) + 1)), "test_error": [0.37, *(1 - np.array(accuracies))]}
    return {"tables": {"evaluations": table}}


def gap(apart: float) -> dict[str, Any]:
    """Log accuracies of five serial seeds that lie -2, -1, 0, 1, 2 times ``apart`` from the middle one.

    At the second checkpoint they lie twice, and at the fifth five times as far from each other; those of the other
    arms ten times.
    """
    rows = [
        (arm, seed, 2 * at, 0.2 * np.exp(apart * at * (seed - 2) * (1 if arm == "serial" else 10)))
        for arm in ARMS
        for seed in range(5)
        for at in range(CHECKPOINTS + 1)
    ]
    return {"tables": {"gap": dict(zip(("arm", "seed", "update", "accuracy"), zip(*rows, strict=True), strict=True))}}


def table1(accuracies: Mapping[str, Any], apart: float = 0.001, profile: str = "paper") -> Frame:
    """Rows of Table 1, of each the accuracies [seeds, checkpoints]."""
    rows = {row: [ended(seed) for seed in np.atleast_2d(found)] for row, found in accuracies.items()}
    return frame_of({**rows, "gap": [gap(apart)]}, profile)


def whole(seeds: int = 4, count: int = 45, **other: float) -> Frame:
    """Whole trainings that end about there, a seed each with its own; their best is two checkpoints before."""
    ends = ENDS | other
    end = lambda row, seed: ends[row] + 0.001 * math.sin(3 * seed + len(row) + 5 * TRAINED.index(row))
    accuracies = {
        row: [[0.3] * (count - 3) + [end(row, s) + 0.01, 0.31, end(row, s)] for s in range(seeds)] for row in TRAINED
    }
    earlier = {f"lenet {row}": [[0.9] * 4 + [end(row, s)] for s in range(seeds)] for row in TRAINED}
    return table1(accuracies | earlier, profile="paper" if count == 45 else "reduced")


def three_seeds(base: Mapping[str, Any] = PRINTED) -> dict[str, Any]:
    """Accuracies [seeds, checkpoints] near ``base``, by a part that no other row, seed or checkpoint has."""
    apart = lambda row: 1 + 0.01 * np.sin(7 * ROWS.index(row) + np.arange(3)[:, None] * 2 + np.arange(CHECKPOINTS))
    return {row: values * apart(row) for row, values in base.items()}


def seconds(rates: Mapping[str, Any], conditions: tuple[float, ...], noise: float = 0.002) -> dict[str, Any]:
    """Seconds [conditions, repeats] by method of a computation whose rates over no communication are near these.

    Repetitions differ by a third as a whole; methods within one by ``noise``.
    """
    shape = np.arange(len(conditions))[:, None] * 3 + np.arange(REPEATS)
    alone = 0.05 * (1 + 0.3 * np.sin(1 + shape))
    found = {"no comm": alone}
    for place, method in enumerate(rates):
        rate = np.broadcast_to(rates[method], (len(conditions),))[:, None]
        found[method] = alone / rate * np.exp(noise * np.cos(5 * place + shape))
    return found


def blocks(
    found: Mapping[str, Any], by: str, conditions: tuple[float, ...], value: str, other: str
) -> dict[str, list[Any]]:
    """A table of seconds under ``value``, beside another column that must not be read, and sums of nothing."""
    rows = [
        (condition, repeat + 1, method, each[at, repeat], 3.0 + place)
        for place, (method, each) in enumerate(found.items())
        for at, condition in enumerate(conditions)
        for repeat in range(REPEATS)
    ]
    rows += [(condition, 1, "empty sum", 1e-3 * (1 + at), float("nan")) for at, condition in enumerate(conditions)]
    return dict(zip((by, "repeat", "method", value, other), map(list, zip(*rows, strict=True)), strict=True))


def link(found: Mapping[str, Any], skipped: str = "") -> dict[str, Any]:
    """A run over the link in which LeNet took these seconds; the sleeping network is as fast by every method."""
    other = {method: np.full((len(SPEEDS), REPEATS), 0.05) for method in ("no comm", *METHODS)}
    columns = ("speed", SPEEDS, "seconds", "fastest")
    return {"skipped": skipped, "tables": {"computing": blocks(found, *columns), "sleeping": blocks(other, *columns)}}


def hosts(found: Mapping[str, Any], skipped: str = "") -> dict[str, Any]:
    return {"skipped": skipped, "tables": {"hosts": blocks(found, "devices", SHARED, "fastest", "seconds")}}


def rates(sgd: Any = 0.7, layers: Any = (0.8, 0.75), late: Any = 0.97) -> dict[str, Any]:
    """Rates by method, a little different for each delay; buckets and DDP, which the paper lacks, above all."""
    found = {"SGD": sgd} | dict(zip(LAYER_WISE, layers, strict=True))
    found |= {name: np.array(late) * factor for name, factor in zip(DELAYED, (0.99, 1.0, 1.005), strict=True)}
    return found | {"layer-wise, buckets": 1.4, "PyTorch DDP": 1.5}


def layers(flops: Mapping[str, float], numbers: Mapping[str, int]) -> dict[str, Any]:
    """Networks of one layer, with one tensor of so many numbers."""
    return {
        "tables": {
            name: {"flops": [flops[name]], "weights": [numbers[name]], "biases": [0]} for name in (ALEXNET, GOOGLENET)
        }
    }


def panels(holds: bool) -> Frame:
    """All groups that decide Fig. 1 and section 4.2, in a world in which the claims hold or another."""
    found = rates() if holds else rates(sgd=1.2, layers=(1.1, 1.15), late=0.6)
    each = hosts(seconds(found, SHARED))
    ratio = np.array([1.9, 2.0, 2.1, 2.05]) if holds else np.array([3.0, 3.1, 2.9, 3.2])
    timed = {"network": [GOOGLENET] * 4 + [ALEXNET] * 4, "repeat": [1, 2, 3, 4] * 2, "seconds": [*ratio, 1, 1, 1, 1]}
    slower = [2.0, 2.1, 1.9] if holds else [0.5, 0.4, 0.45]
    return frame_of(
        {
            "link": [link(seconds(found, SPEEDS))],
            **{f"hosts {letter}": [each] for letter in CASES},
            "compute": [{"tables": {"compute": timed}}],
            "workers": [{"weights over bias": slower, "many small over one large": slower}],
        },
        "reduced",
    )
