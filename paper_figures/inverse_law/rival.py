"""The other batch-size model in the suite, on the same data: the bound behind ISGD's Eq. 22.

ISGD takes the loss after t iterations of batch size n to be psi = c1 / sqrt(n t) + c2 / t. Solved for the
iterations to reach psi, with u = c1 / (2 psi) and v = c2 / psi,

    N(M) = (u / sqrt(M) + sqrt(u^2 / M + v))^2,

which falls as 1/sqrt(M) towards its floor v; inverse_law's N falls as 1/M. No data can follow both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from suite.batch_size.law import Updates


@dataclass(frozen=True)
class Comparison:
    """Sums of squared logarithmic residuals of the two models, each with two fitted constants."""

    inverse: float
    rival: float
    u: float
    v: float

    @property
    def preference(self) -> float:
        """log10(rival / inverse): above 0 the inverse law fits better."""
        return math.log10(self.rival / self.inverse) if self.inverse > 0 else math.inf

    def rival_updates(self, batch: float) -> float:
        return rival_updates(batch, self.u, self.v)


def rival_updates(batch: float, u: float, v: float) -> float:
    """Iterations of ISGD's model at a batch size."""
    return (u / math.sqrt(batch) + math.sqrt(u**2 / batch + v)) ** 2


def compare(counted: Sequence[Updates]) -> Comparison:
    """Fit both models by least squares on logarithms to the finished runs."""
    import numpy as np
    from scipy.optimize import least_squares

    batch = np.array([float(u.batch) for u in counted for n in u.seen if n is not None])
    y = np.log([n for u in counted for n in u.seen if n is not None])

    def inverse(theta: np.ndarray) -> np.ndarray:
        return np.log(np.exp(theta[0]) + np.exp(theta[1]) / batch) - y

    def rival(theta: np.ndarray) -> np.ndarray:
        root = np.exp(theta[0]) / np.sqrt(batch)
        return 2 * np.log(root + np.sqrt(root**2 + np.exp(theta[1]))) - y

    floor = float(y.min())
    starts = [floor - 3, floor - 1, floor, floor + 2]
    ours = min((least_squares(inverse, [floor, start]) for start in starts), key=lambda r: r.cost)
    theirs = min((least_squares(rival, [start / 2, floor]) for start in starts), key=lambda r: r.cost)
    u, v = np.exp(theirs.x)
    return Comparison(2 * float(ours.cost), 2 * float(theirs.cost), float(u), float(v))
