"""Eq. 18: the squares of the learning rates must be summable, says the paper, for SGD to converge.

Its own rates are constant, or constant after two drops, so their squares are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.isgd.settings import RATE_FACTORS, RATES
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities

if TYPE_CHECKING:
    import numpy as np


def measure(_: Evidence) -> Quantities:
    """Eq. 18 on f(w) = w^2/2 with unit gradient noise, where E h obeys (1 - eta)^2 E h + eta^2 exactly.

    Squares are summable when the sum over (2N, 4N] is smaller than that over (N, 2N] by a fixed factor; h goes
    to zero when it still falls by a fixed factor from 2N to 4N.
    """
    import numpy as np

    count = 2**14
    steps = np.arange(4 * count, dtype=float)
    falling = np.select(
        [steps < count / 4, steps < count / 2], [RATE_FACTORS[0], RATE_FACTORS[1]], default=RATE_FACTORS[2]
    )
    schedules = {f"constant {RATES[name]:g}": np.full_like(steps, RATES[name]) for name in ("MNIST", "CIFAR-10")}
    schedules[f"{RATES['ImageNet']:g} with two drops"] = RATES["ImageNet"] * falling
    schedules |= {f"(1+t)^-{power:g}": (1 + steps) ** -power for power in (0.5, 0.75, 1.0)}

    def verdict(rates: np.ndarray) -> tuple[bool, bool]:
        squares = np.square(rates)
        early, late = squares[count : 2 * count].sum(), squares[2 * count :].sum()
        distance, seen = 1.0, []
        for t, rate in enumerate(rates.tolist()):
            distance = (1 - rate) ** 2 * distance + rate**2
            if t + 1 in (2 * count, 4 * count):
                seen.append(distance)
        return bool(late < 0.9 * early), seen[1] < 0.9 * seen[0]

    found = {name: verdict(rates) for name, rates in schedules.items()}
    agree = [summable == converges for summable, converges in found.values()]
    note = "; ".join(
        f"{name}: {'' if s else 'not '}summable, h {'->' if c else 'not ->'} 0" for name, (s, c) in found.items()
    )
    yield "condition", exact(sum(agree) / len(agree), note=note)


ARTIFACTS = (Artifact("isgd/eq18", "Square-summable learning-rate condition", measures=(measure,)),)
