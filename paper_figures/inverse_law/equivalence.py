"""Equivalence with the inverse law: the largest relative misfit of N_inf + alpha / M over a curve.

The law is fitted by least squares to the means, over seeds, of the logarithms of the updates. It is asked of every
batch size at which the threshold is *achievable*: every seed reached it within its limit. The misfit of such a point
is d = mean log N - log(N_inf + alpha / M), and the value is max |d| over all of a curve's points and thresholds, as a
ratio minus one.

Its interval answers the two ways in which a claim of equivalence is decided. The upper end is the largest |d| + t s:
if it lies below the margin, every point's own 95% interval does, and no correction is needed to say so of all
(intersection-union test). The lower end is the largest |d| - t s with Bonferroni's t: if it lies above the margin,
some point lies outside, however many were looked at. s is the jackknife's over seeds, the law fitted anew each time;
three seeds say little of a point's own scatter, so s is at least that of all points of the threshold together, and
t has their degrees of freedom.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from paper_figures.inverse_law.exponents import LEAST_POINTS
from paper_figures.inverse_law.readings import crossings, curve
from paper_figures.inverse_law.settings import BY_NAME, ONCE
from paper_figures.inverse_law.worlds import following
from suite.batch_size.law import Updates, fit_inverse_law
from suite.claims.intervals import Interval, jackknife_variance
from suite.papers.artifact import Evidence, Missing
from suite.papers.counterfeits import counterfeit, edited, forged, genuine
from suite.runs.store import Run

if TYPE_CHECKING:
    import numpy as np

LENDING = (
    "cifar10_small-lr0p05",
    "cifar100_small-lr0p05",
)  # curves whose seeds stand in for those of one-seed curves


class Scatter(NamedTuple):
    """Standard deviation of one run's log updates between seeds, and its degrees of freedom."""

    deviation: float
    degrees: int


class Misfits(NamedTuple):
    """Misfits of logarithms [P] with their errors [P], the errors' degrees of freedom, and the number of seeds."""

    misfit: np.ndarray
    error: np.ndarray
    degrees: int
    seeds: int


def achievable(counted: Sequence[Updates]) -> list[Updates]:
    """The batch sizes at which every seed arrived."""
    return [u for u in counted if not u.censored]


def largest_misfit(thresholds: Iterable[Sequence[Updates]], scatter: Scatter | None = None) -> Interval | None:
    """The largest relative misfit over the achievable points of all thresholds, with the interval described above.

    Args:
        thresholds: updates by batch size [threshold][batch size]; the seeds are the same at every size.
        scatter: between seeds of other curves, for a curve with one seed; without it its interval is infinite.

    Returns:
        None where no threshold is achievable at ``LEAST_POINTS`` batch sizes.
    """
    found = [misfits(kept, scatter) for counted in thresholds if len(kept := achievable(counted)) >= LEAST_POINTS]
    return largest(found) if found else None


def largest(found: Sequence[Misfits]) -> Interval:
    """The largest relative misfit of all points, with the interval described above; ``n`` is the number of seeds."""
    import numpy as np
    from scipy import stats

    count = sum(len(each.misfit) for each in found)
    value = max(float(np.abs(each.misfit).max()) for each in found)
    if any(each.degrees < 1 for each in found):
        return Interval(math.expm1(value), -math.inf, math.inf, 1)
    low = high = 0.0
    for each in found:
        size = np.abs(each.misfit)
        high = max(high, float((size + stats.t.ppf(0.975, each.degrees) * each.error).max()))
        low = max(low, float((size - stats.t.isf(0.025 / count, each.degrees) * each.error).max()))
    return Interval(math.expm1(value), math.expm1(low), math.expm1(high), min(each.seeds for each in found))


def misfits(counted: Sequence[Updates], scatter: Scatter | None = None) -> Misfits:
    """Misfits of the law fitted to points at which every seed arrived, with the jackknife's errors over seeds.

    With one seed the errors are those of residuals that scatter as ``scatter`` says.
    """
    import numpy as np

    batch = np.array([float(u.batch) for u in counted])
    logs = np.log(np.array([u.seen for u in counted], dtype=float))  # [P, S]
    seeds = logs.shape[1]
    whole = _misfit(batch, logs.mean(1))
    if seeds > 1:
        parts = np.array([_misfit(batch, np.delete(logs, j, 1).mean(1)) for j in range(seeds)])  # [S, P]
        own = jackknife_variance(parts)
        spare = (seeds - 1) * (len(batch) - 2)
        together = (seeds - 1) * own.sum() / spare  # two constants took up their part of the scatter
        return Misfits(whole, np.sqrt(np.maximum(own, together)), spare, seeds)
    if scatter is None:
        return Misfits(whole, np.full(len(batch), math.inf), 0, 1)
    law = np.exp(logs[:, 0] - whole)  # [P]
    design = np.stack([1 / law, 1 / (batch * law)], 1)  # [P, 2], of log N by N_inf and alpha
    leverage = np.einsum("pi,ip->p", design, np.linalg.pinv(design))
    return Misfits(whole, scatter.deviation * np.sqrt(np.maximum(1 - leverage, 0)), scatter.degrees, 1)


def _misfit(batch: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Misfits of the law fitted to means of logarithms [P]."""
    import numpy as np

    law = fit_inverse_law([Updates(int(b), (math.exp(mean),)) for b, mean in zip(batch, means, strict=True)])
    return means - np.log(law.floor + law.sensitivity / batch)


def between_seeds(curves: Iterable[Sequence[Updates]]) -> Scatter | None:
    """The pooled scatter of log updates between the seeds of a size, over achievable points; None without any."""
    squares, degrees = 0.0, 0
    for u in (u for counted in curves for u in achievable(counted)):
        logs = [math.log(n) for n in u.seen if n]
        mean = math.fsum(logs) / len(logs)
        squares += math.fsum((each - mean) ** 2 for each in logs)
        degrees += len(logs) - 1
    return Scatter(math.sqrt(squares / degrees), degrees) if degrees else None


def lent_scatter(evidence: Evidence) -> Scatter | None:
    """Between seeds of the LeNet on CIFAR, at its first threshold and the sizes of the one-seed curves."""
    curves = []
    for row in map(BY_NAME.__getitem__, LENDING):
        with suppress(Missing):
            counted = crossings(curve(evidence, row), row.thresholds(evidence.profile)[0])
            curves.append([u for u in counted if u.batch in ONCE["sizes"]])
    return between_seeds(curves)


CLAIMS = tuple(f"inverse_law/fig1a/misfit-{name}" for name in BY_NAME)


@counterfeit(*CLAIMS)
def small_batches_take_longer(evidence: Evidence) -> Evidence:
    """Up to 16 examples a batch needs three times the updates of the law."""
    return following(evidence, lambda batch: 200 * (1 + 4 / batch) * (3 if batch <= 16 else 1))


@genuine(*CLAIMS)
def law_throughout(evidence: Evidence) -> Evidence:
    """Updates follow the law, seeds 3% about it."""

    def told(run: Run) -> Run:
        draw, law = random.Random(run.id), 200 * (1 + 4 / run.spec.settings["batch"])
        count = len(run.results["crossed_training"])
        return forged(run, {"crossed_training": [law * math.exp(draw.gauss(0, 0.03)) for _ in range(count)]})

    return edited(evidence, told, *(name for name in evidence.groups if "/" in name))
