"""Equations 19 to 22: time per update, updates in a given time, loss after them, and the best batch size.

With C1 images/s and C2 s per exchange, an update at batch size n costs n/C1 + C2 seconds (Eq. 19), so t seconds
hold T = t / (n/C1 + C2) updates (Eq. 20), after which the loss is 1/sqrt(n T) + 1/T, the bound of Eq. 21 taken
as an equality. Substituting T and multiplying by t gives Eq. 22. At a fixed loss psi, Eq. 22 is a quadratic in
sqrt(t); the batch size that minimises t solves

    4 psi n^3 - 2 K n - K^2 = 0,    K = C1 C2.

For psi -> 0 its positive root grows as sqrt(K / (2 psi)), for psi -> inf as (K^2 / (4 psi))^(1/3). So two systems
whose K differ by a factor of two have optima in a ratio between sqrt(2) and 2^(2/3), whatever psi is.
"""

from __future__ import annotations

import math
from typing import Any


def seconds_per_update(batch: float, c1: float, c2: float) -> float:
    """Eq. 19."""
    return batch / c1 + c2


def updates_within(seconds: float, batch: float, c1: float, c2: float) -> float:
    """Eq. 20."""
    return seconds / seconds_per_update(batch, c1, c2)


def loss_after(updates: float, batch: float) -> float:
    """Eq. 21 as an equality; its unit is not stated, since all constants are dropped."""
    return 1 / math.sqrt(batch * updates) + 1 / updates


def seconds_to(psi: float, batch: Any, c1: float, c2: float) -> Any:
    """Eq. 22 solved for the time at which the loss is psi; ``batch`` is a number or an array of them."""
    slope = ((batch + c1 * c2) / (batch * c1)) ** 0.5
    constant = seconds_per_update(batch, c1, c2)
    return ((slope + (slope**2 + 4 * psi * constant) ** 0.5) / (2 * psi)) ** 2


def best_batch(psi: float, c1: float, c2: float) -> float:
    """The positive root of 4 psi n^3 - 2 K n - K^2; there is one, because its coefficients change sign once."""
    from scipy.optimize import brentq

    k = c1 * c2
    bound = 2 * (math.sqrt(k / (2 * psi)) + (k * k / (4 * psi)) ** (1 / 3))
    return float(brentq(lambda n: 4 * psi * n**3 - 2 * k * n - k * k, 0.0, bound, xtol=1e-12, rtol=1e-14))


def loss_with_best_batch(batch: float, c1: float, c2: float) -> float:
    """The psi at which ``batch`` is the best batch size."""
    k = c1 * c2
    return k * (2 * batch + k) / (4 * batch**3)
