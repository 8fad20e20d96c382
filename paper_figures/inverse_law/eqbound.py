"""The convex bound on the number of updates, iterated as a recurrence and in closed form.

Residual D_k of the loss, noise floor s: D_{k+1} = D_k - lambda (D_k^2 - s^2). The closed form is an upper bound of
the count; it is finite only for thresholds above s, and its expansion in s = sqrt(theta / M) has, besides the
1/M of Eq. 2, a term in 1/sqrt(M) that is small where lambda times the threshold is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from paper_figures.inverse_law.settings import BATCHES
from paper_figures.inverse_law.synthetic_systems import across
from reference_impls.inverse_law_model import Recursion, law_of_bound
from suite.batch_size.law import Updates, fit_inverse_law, free_exponent
from suite.claims.estimate import exact, interval
from suite.papers.artifact import Artifact, Evidence, Quantities

CASES = tuple(itertools.product((1e-3, 1e-4), (0.1, 0.3), (0.1, 0.3, 0.5)))  # lambda, threshold, s / threshold
START = 2.3


def measure_recurrence(evidence: Evidence) -> Quantities:
    """The closed form against iteration, and what the recurrence does near its floor."""
    ratios, lowest, steps = [], [], []
    for rate, target, share in CASES:
        recursion = Recursion(rate, share * target)
        count = iterated(recursion, START, target)
        ratios.append(recursion.updates(START, target) / count)
        path = list(itertools.islice(residuals(recursion, START), 3 * count))
        lowest.append(min(path) / recursion.noise)
        steps.append(min(a - b for a, b in itertools.pairwise(path)))
    yield "telescoped", across(ratios)
    yield "residual-floor", exact(min(lowest))
    yield "monotone", exact(min(steps))


def residuals(recursion: Recursion, start: float) -> Iterator[float]:
    """D_0, D_1, ... of the recurrence taken as an equality."""
    value = start
    while True:
        yield value
        value -= recursion.rate * (value**2 - recursion.noise**2)


def iterated(recursion: Recursion, start: float, target: float) -> int:
    """The first k with D_k <= target."""
    return next(k for k, value in enumerate(residuals(recursion, start)) if value <= target)


def measure_small_noise(evidence: Evidence) -> Quantities:
    """The exponent of M in N - N_inf of the bound at small noise: lambda = 1e-5, s up to a third of the threshold."""
    rate, target, theta = 1e-5, 0.2, 0.2**2 / 9
    free = free_exponent(bound_counts(rate, theta, target))
    yield "inverse-in-m", interval(-free.mean, -free.high, -free.low)
    law, form = fit_inverse_law(bound_counts(rate, theta, target)), law_of_bound(rate, theta, START, target)
    yield "small-noise-constants", exact([law.floor / form.floor, law.sensitivity / form.sensitivity])


def bound_counts(rate: float, theta: float, target: float) -> list[Updates]:
    """The bound's updates by batch size, with s^2 = theta / M, as exact measurements (two equal runs each)."""
    counted = []
    for batch in BATCHES:
        updates = Recursion(rate, math.sqrt(theta / batch)).updates(START, target)
        counted.append(Updates(batch, (updates, updates)))
    return counted


def measure_finiteness(evidence: Evidence) -> Quantities:
    """The least threshold, in noise floors, for which the closed form gives a finite count, by bisection."""
    edges = []
    for rate, noise in itertools.product((1e-2, 1e-3, 1e-4), (0.01, 0.1)):
        low, high = 0.5, 2.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if _finite(Recursion(rate, noise), middle * noise) else (middle, high)
        edges.append(high)
    yield "needs-eps-above-floor", exact(min(edges), note="least multiple of the floor that has a finite count")


def _finite(recursion: Recursion, target: float) -> bool:
    try:
        return math.isfinite(recursion.updates(START, target))
    except ValueError:
        return False


ARTIFACTS = (
    Artifact(
        "inverse_law/eqbound",
        "The convex bound on updates",
        measures=(measure_recurrence, measure_small_noise, measure_finiteness),
    ),
)
