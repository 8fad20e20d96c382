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

Updates that hardly fall lie near a constant, too. Where the same rule does not refute a constant, at a margin of 10%,
the interval is open above: such a curve can lie off the law, and cannot confirm it.

Beside the claims stand the largest misfit at the slow rate and the batch size from which on the law holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from paper_figures.inverse_law import law
from paper_figures.inverse_law.settings import BY_NAME, Row
from suite.batch_size.law import FitError, InverseLawFit, Updates, fit_inverse_law
from suite.claims.intervals import LEVEL, Interval, jackknife_variance, log_interval, quantile
from suite.papers.figure import Frame, Missing, Quantity, np

SLOW = 0.01  # the rate at which the law holds at every batch size
BREAKS = BY_NAME["mnist_medium-lr0p05"]  # the curve that leaves the law at small batches
FAR = 16  # batch sizes whose law says what smaller ones were to need
NEAR = 0.1  # misfit up to which a batch size is said to follow the law


class Misfits(NamedTuple):
    """Misfits of logarithms [P] with their errors [P], the errors' degrees of freedom, and the number of seeds."""

    misfit: np.ndarray
    error: np.ndarray
    degrees: int
    seeds: int


def achievable(counted: Sequence[Updates]) -> list[Updates]:
    """The batch sizes at which every seed arrived."""
    return [u for u in counted if not u.censored]


def largest_misfit(thresholds: Iterable[Sequence[Updates]]) -> Interval:
    """The largest relative misfit over the achievable points of all thresholds, with the interval described above.

    Args:
        thresholds: updates by batch size [threshold][batch size]; the seeds are the same at every size.

    Raises Missing where no threshold is achievable at ``LEAST_POINTS`` batch sizes.
    """
    found = [kept for counted in thresholds if len(kept := achievable(counted)) >= law.LEAST_POINTS]
    if not found:
        raise Missing(f"lacks {law.LEAST_POINTS} batch sizes whose seeds all reached a threshold")
    of_law, of_constant = (largest([misfits(kept, of) for kept in found]) for of in (from_law, from_constant))
    return of_law if of_constant.low > NEAR else replace(of_law, high=math.inf)


def largest(found: Sequence[Misfits]) -> Interval:
    """The largest relative misfit of all points, with the interval described above; ``n`` is the number of seeds."""
    count = sum(len(each.misfit) for each in found)
    value = max(float(np.abs(each.misfit).max()) for each in found)
    if any(each.degrees < 1 for each in found):
        return Interval(math.expm1(value), -math.inf, math.inf, 1)
    low = high = 0.0
    for each in found:
        size = np.abs(each.misfit)
        high = max(high, float((size + quantile(each.degrees, LEVEL) * each.error).max()))
        low = max(low, float((size - quantile(each.degrees, LEVEL / count) * each.error).max()))
    seeds, degrees = min(each.seeds for each in found), min(each.degrees for each in found)
    return Interval(math.expm1(value), math.expm1(low), math.expm1(high), seeds, degrees)


def misfits(counted: Sequence[Updates], misfit: Callable[..., np.ndarray]) -> Misfits:
    """Misfits of what is fitted to points at which every seed arrived, with the jackknife's errors over seeds.

    With one seed the errors are infinite.
    """
    batch = np.array([float(u.batch) for u in counted])
    logs = np.log(np.array([u.seen for u in counted], dtype=float))  # [P, S]
    seeds = logs.shape[1]
    whole = misfit(batch, logs.mean(1))
    if seeds == 1:
        return Misfits(whole, np.full(len(batch), math.inf), 0, 1)
    parts = np.array([misfit(batch, np.delete(logs, j, 1).mean(1)) for j in range(seeds)])  # [S, P]
    own = jackknife_variance(parts)
    spare = (seeds - 1) * (len(batch) - 2)
    together = (seeds - 1) * own.sum() / spare  # two constants took up their part of the scatter
    return Misfits(whole, np.sqrt(np.maximum(own, together)), spare, seeds)


def from_law(batch: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Misfits of the law fitted to means of logarithms [P]."""
    fit = fit_inverse_law([Updates(int(b), (math.exp(mean),)) for b, mean in zip(batch, means, strict=True)])
    return means - np.log(fit.floor + fit.sensitivity / batch)


def from_constant(batch: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Misfits of a constant, the same at every batch size."""
    return means - means.mean()


# ---------------------------------------------------------------- numbers that answers tell


def typical(fit: InverseLawFit, updates: Updates) -> float:
    """Typical (geometric mean) updates at a batch size over those of the law, minus one."""
    return log_interval([n / fit.predict(updates.batch) for n in updates.seen if n is not None]).mean - 1


def slow_rows(frame: Frame) -> list[Row]:
    """The MNIST curves at the slow rate. Raises Missing without any."""
    rows = [row for row in law.stored_rows(frame) if row.data == "mnist" and row.rate == SLOW]
    if not rows:
        raise Missing(f"no curve at rate {SLOW} at {frame.profile}")
    return rows


def slow_groups(frame: Frame) -> law.Groups:
    return [group for row in slow_rows(frame) for group in law.family_groups(frame, row)]


def slow_curves(frame: Frame) -> list[list[Updates]]:
    """Updates to every threshold of these curves."""
    return [counted for row in slow_rows(frame) for counted in law.families(frame, row).values()]


def largest_slow(frame: Frame) -> float:
    """The largest misfit in % over their achievable points, of laws fitted to every batch size."""
    fitted = [(law.law_fit(counted), achievable(counted)) for counted in slow_curves(frame)]
    return 100 * max(abs(typical(fit, u)) for fit, points in fitted for u in points)


def left_out(frame: Frame) -> float:
    """The largest misfit in % of the smallest batch size to the law fitted to the larger ones."""
    return 100 * max(abs(typical(law.law_fit(larger), least)) for least, *larger in slow_curves(frame))


def behind_slow(frame: Frame) -> list[float]:
    """Networks, curves, smallest and largest batch size, and the fewest seeds of a point."""
    curves = slow_curves(frame)
    points = [u for counted in curves for u in achievable(counted)]
    sizes = [u.batch for u in points]
    return [len(slow_rows(frame)), len(curves), min(sizes), max(sizes), min(len(u.seen) for u in points)]


def slow_exponents(frame: Frame) -> list[Interval]:
    """The exponent of M in N - N_inf of each network, one for all of its thresholds."""
    return [law.exponent(law.families(frame, row).values()) for row in slow_rows(frame)]


def slow_falls(frame: Frame) -> list[float]:
    """How much more updates one example needs than the floor, in %: the least and the most of the curves."""
    fits = [law.law_fit(counted) for counted in slow_curves(frame)]
    falls = [100 * fit.sensitivity / fit.floor for fit in fits]
    return [min(falls), max(falls)]


def breaking(frame: Frame) -> dict[float, list[Updates]]:
    """Updates of the curve that leaves the law, by threshold, the highest first."""
    return dict(sorted(law.families(frame, BREAKS).items(), reverse=True))


def holds_from(counted: Sequence[Updates]) -> int:
    """The least batch size down to which the law of M >= FAR is met within ``NEAR``."""
    try:
        fit = law.law_fit([u for u in counted if u.batch >= FAR])
    except FitError as error:
        raise Missing(str(error)) from error
    least = FAR
    for updates in sorted((u for u in counted if u.batch < FAR), key=lambda u: -u.batch):
        if updates.censored or abs(typical(fit, updates)) > NEAR:
            break
        least = updates.batch
    return least


BEHIND = "networks, curves, smallest and largest batch size, seeds a point"
ALLOWED = "misfit allowed in %; batch sizes from here on fit the law"
ANSWERED = {
    "largest-misfit": Quantity(largest_slow, slow_groups, note=f"rate {SLOW}, every batch size fitted"),
    "left-out-misfit": Quantity(
        left_out, slow_groups, note=f"rate {SLOW}, the smallest batch size left out of the fit"
    ),
    "misfit-behind": Quantity(behind_slow, slow_groups, note=BEHIND),
    "slow-exponents": Quantity(slow_exponents, slow_groups, note="of M in N - N_inf; small, medium, large LeNet"),
    "slow-falls": Quantity(slow_falls, slow_groups, note="alpha / N_inf in %: least and most of the curves"),
    "onset-rule": Quantity(lambda frame: [100 * NEAR, FAR], note=ALLOWED),
    "onset-thresholds": Quantity(lambda frame: list(breaking(frame)), partial(law.family_groups, row=BREAKS)),
    "onset-batches": Quantity(
        lambda frame: list(map(holds_from, breaking(frame).values())), partial(law.family_groups, row=BREAKS)
    ),
}
