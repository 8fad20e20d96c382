"""The other batch-size model of the suite on Fig. 1's data: the bound behind ISGD's Eq. 22.

ISGD takes the loss after t iterations of batch size n to be psi = c1 / sqrt(n t) + c2 / t. Solved for the iterations
to reach psi, with u = c1 / (2 psi) and v = c2 / psi,

    N(M) = (u / sqrt(M) + sqrt(u^2 / M + v))^2,

which falls as 1/sqrt(M) towards its floor v; this paper's N falls as 1/M. No data can follow both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from suite.batch_size.law import Updates

if TYPE_CHECKING:
    import numpy as np


def preference(counted: Sequence[Updates]) -> float:
    """log10 of the rival's squared misfit over the inverse law's, both fitted by least squares on logarithms.

    Two constants each, to the finished runs; above 0 the inverse law fits better.
    """
    import numpy as np
    from scipy.optimize import least_squares

    batch = np.array([float(u.batch) for u in counted for n in u.seen if n is not None])
    y = np.log([n for u in counted for n in u.seen if n is not None])

    def inverse(theta: np.ndarray) -> np.ndarray:
        return np.log(np.exp(theta[0]) + np.exp(theta[1]) / batch) - y

    def rival(theta: np.ndarray) -> np.ndarray:
        return 2 * np.log(rival_root(batch, np.exp(theta[0]), np.exp(theta[1]))) - y

    floor = float(y.min())
    starts = [floor - 3, floor - 1, floor, floor + 2]
    ours = min(2 * float(least_squares(inverse, [floor, start]).cost) for start in starts)
    theirs = min(2 * float(least_squares(rival, [start / 2, floor]).cost) for start in starts)
    return math.log10(theirs / ours) if ours > 0 else math.inf


def rival_root(batch: float | np.ndarray, u: float, v: float) -> Any:
    """Square root of the iterations of ISGD's model at a batch size, or at an array of them."""
    import numpy as np

    root = u / np.sqrt(batch)
    return root + np.sqrt(root**2 + v)
