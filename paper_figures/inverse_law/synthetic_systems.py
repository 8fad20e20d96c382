"""Seeded random laws and systems on which Equations 1-12 are tried, and how far two numbers are apart.

The constants span the regimes of the paper: floors of 10 .. 10^4 updates, sensitivities up to 10^6, knees of
1 .. 100 examples, communication from negligible to dominant. They are redrawn the same way on every call.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Literal

from reference_impls.inverse_law_model import Law, System, convergence_seconds
from suite.claims.estimate import Estimate, interval

Topology = Literal["all_reduce", "server"]
DRAWS = 300
LEARNERS = (2, 3, 8, 64, 512, 4096)


def draws(count: int = DRAWS, seed: int = 0, topology: Topology = "all_reduce") -> Iterator[tuple[Law, System, int]]:
    """Random laws and systems, with a number of learners."""
    draw = random.Random(seed)
    for _ in range(count):
        law = Law(10 ** draw.uniform(1, 4), 10 ** draw.uniform(2, 6))
        system = System(10 ** draw.uniform(-6, -3), 10 ** draw.uniform(0, 2), 10 ** draw.uniform(-5, -1), topology)
        yield law, system, draw.choice(LEARNERS)


def numeric_optimum(law: Law, system: System, learners: int) -> tuple[float, float]:
    """(M, T) of the least Eq. 5 found by search alone: a grid over 12 decades, then golden sections."""
    from scipy.optimize import minimize_scalar

    seconds = lambda log_batch: convergence_seconds(law, system, math.exp(log_batch), learners)
    grid = [i * 0.05 for i in range(-20, 561)]
    near = min(grid, key=seconds)
    found = minimize_scalar(seconds, bounds=(near - 0.05, near + 0.05), method="bounded", options={"xatol": 1e-12})
    return math.exp(found.x), float(found.fun)


def relative(a: float, b: float) -> float:
    """The distance of two numbers over the larger of their sizes."""
    return abs(a - b) / max(abs(a), abs(b), 1e-300)


def across(values: list[float]) -> Estimate:
    """All exact cases as one value, their middle, and the interval from the least to the largest."""
    low, high = min(values), max(values)
    return interval((low + high) / 2, low, high, n=len(values))
