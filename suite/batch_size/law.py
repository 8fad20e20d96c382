"""The fit of N(M) = N_inf + alpha / M to measured updates (inverse_law, Eqs. 2 and 13), and whether the law holds.

Updates to a threshold scatter by about the same *percentage* at every batch size, since a run that starts badly
is late by a factor. So the fit is least squares on logarithms,

    log n_ij = log(N_inf + alpha / M_i) + b_j + e_ij,      e_ij independent, normal, one variance

with i over batch sizes and j over seeds. ``b_j`` (summing to zero) is what a seed's initial weights do to the
updates at every batch size; it is fitted when all batch sizes share their seeds (``blocks``). With the noise
multiplicative, N is the median of the updates. N_inf may come out negative (the paper fits one such value).

Whether the law holds is a lack-of-fit F test: the scatter of the means about the curve against the scatter of
repetitions about their means. Without repetitions nothing can be said, and the fit says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from suite.claims.intervals import Interval, quantile
from suite.lazy import np, scipy

SIGNIFICANCE = 0.01  # of the lack-of-fit test
EM_STEPS = 200  # at most, of expectation-maximisation over censored runs


class FitError(ValueError):
    """Measurements that do not determine the law; the message says what to add."""


@dataclass(frozen=True)
class Updates:
    """Updates to a threshold at one batch size. ``seen`` [runs]; None for a run censored at ``limit`` updates."""

    batch: int
    seen: tuple[float | None, ...]
    limit: float | None = None

    def __post_init__(self) -> None:
        seen = tuple(self.seen) if isinstance(self.seen, Iterable) else ()  # an array, too
        if self.batch <= 0 or not seen or any(n is not None and not 0 < n < math.inf for n in seen):
            known = "both must be positive and finite, updates a number for each run, None if it did not arrive"
            raise FitError(f"batch={self.batch} with updates {self.seen}: {known}")
        vars(self)["seen"] = seen
        if self.censored and not (self.limit and 0 < self.limit < math.inf):
            raise FitError(f"batch={self.batch} has {self.censored} censored runs; say at which limit of updates")

    @property
    def censored(self) -> int:
        return sum(n is None for n in self.seen)


@dataclass(frozen=True)
class InverseLawFit:
    """The fitted law. ``floor`` is N_inf (updates), ``sensitivity`` alpha (updates x examples).

    ``covariance`` [2, 2] of the two and ``degrees`` of freedom behind it; ``scatter`` is the relative standard
    deviation of one run. ``lack_of_fit`` is the p-value of the F test (None without repetitions or spare batch
    sizes). ``left_out`` are batch sizes at which no run reached the threshold.
    """

    floor: float
    sensitivity: float
    covariance: tuple[tuple[float, float], tuple[float, float]]
    degrees: int
    scatter: float
    batches: tuple[int, ...]
    runs: int
    censored: int
    lack_of_fit: float | None
    left_out: tuple[int, ...] = ()

    def predict(self, batch: float) -> float:
        """Median updates at a batch size."""
        return self.floor + self.sensitivity / batch

    def _interval(self, value: float, variance: float, confidence: float) -> Interval:
        if self.degrees < 1:
            return Interval(value, -math.inf, math.inf, self.runs)
        half = quantile(self.degrees, 1 - confidence) * math.sqrt(max(variance, 0.0))
        return Interval(value, value - half, value + half, self.runs, self.degrees)

    def floor_interval(self, confidence: float = 0.95) -> Interval:
        """Student t interval of N_inf; infinite when two batch sizes without repetitions determined it."""
        return self._interval(self.floor, self.covariance[0][0], confidence)

    def sensitivity_interval(self, confidence: float = 0.95) -> Interval:
        """Student t interval of alpha."""
        return self._interval(self.sensitivity, self.covariance[1][1], confidence)

    def prediction_interval(self, batch: float, confidence: float = 0.95) -> Interval:
        """Interval of the median at a batch size."""
        (vf, c), (_, va) = self.covariance
        return self._interval(self.predict(batch), vf + 2 * c / batch + va / batch**2, confidence)

    @property
    def verdict(self) -> str:
        """*holds*, *does not hold*, or *cannot tell* and why."""
        if self.lack_of_fit is None:
            return "cannot tell: the test needs three batch sizes and repetitions"
        if self.sensitivity <= 0:
            return "cannot tell: alpha is not told from nought; add smaller batch sizes or more seeds"
        return "holds" if self.lack_of_fit >= SIGNIFICANCE else "does not hold"


def fit_inverse_law(measured: Sequence[Updates], *, blocks: bool = False) -> InverseLawFit:
    """Fit the law to updates at several batch sizes.

    ``blocks``: position j of every ``seen`` is the same seed j, whose effect is fitted too.
    A censored run enters as "more than its limit": by expectation-maximisation, at the mean that the fitted
    normal has beyond it. A batch size without any finished run is left out and named.

    Raises:
        FitError: fewer than two batch sizes with finished runs; two batch sizes between which the updates do
            not fall by more than their scatter, which cannot tell alpha from zero; blocks of unequal length.

    Example:
        >>> counted = [Updates(4, (350.0, 352.0)), Updates(16, (162.0, 163.0)), Updates(64, (116.0, 115.0))]
        >>> fit = fit_inverse_law(counted)
        >>> round(fit.floor), round(fit.sensitivity), fit.verdict
        (100, 1005, 'holds')

    Source: ``reference_impls.inverse_law_model``, Eqs. 2 and 13.
    """
    return _fit(tuple(measured), blocks)


@lru_cache(maxsize=1024)
def _fit(measured: tuple[Updates, ...], blocks: bool) -> InverseLawFit:
    """Several claims and their figures ask for the same curves."""
    usable, left_out = _usable(measured)
    batch, runs, hidden, effects = _rows(usable, blocks)
    y, theta = _imputed(np.log(runs), hidden, 1 / batch, effects)
    residual = y - _model(theta, 1 / batch, effects)
    degrees = len(y) - len(theta) - int(hidden.sum())
    jacobian = _jacobian(theta, 1 / batch, effects)
    variance = float(residual @ residual) / degrees if degrees > 0 else math.nan
    covariance = np.full((2, 2), math.inf)
    if degrees > 0:
        covariance = variance * np.linalg.pinv(jacobian[~hidden].T @ jacobian[~hidden])[:2, :2]
    (vf, c), (_, va) = covariance
    fit = InverseLawFit(
        floor=float(theta[0]),
        sensitivity=float(theta[1]),
        covariance=((float(vf), float(c)), (float(c), float(va))),
        degrees=degrees,
        scatter=math.sqrt(variance),
        batches=tuple(u.batch for u in usable),
        runs=len(y),
        censored=sum(u.censored for u in measured),
        lack_of_fit=_lack_of_fit(y, batch, effects, residual),
        left_out=left_out,
    )
    _identified(fit, usable)
    return fit


def _usable(measured: Sequence[Updates]) -> tuple[list[Updates], tuple[int, ...]]:
    """Batch sizes in ascending order, and those that no run finished."""
    batches = [u.batch for u in measured]
    if len(set(batches)) < len(batches):
        raise FitError(f"batch sizes {sorted(batches)} repeat; give all runs of a batch size together")
    ordered = sorted(measured, key=lambda u: u.batch)
    usable = [u for u in ordered if u.censored < len(u.seen)]
    left_out = tuple(u.batch for u in ordered if u.censored == len(u.seen))
    if len(usable) < 2:
        why = f", none of the runs at {left_out} having reached the threshold" if left_out else ""
        raise FitError(
            f"the law has two constants and {len(usable)} usable batch sizes{why}; run at least two, far apart"
        )
    return usable, left_out


def _rows(usable: Sequence[Updates], blocks: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """One row per run: its batch size, its updates or limit, whether it is censored, and the effects of its seed."""
    if blocks and len({len(u.seen) for u in usable}) != 1:
        raise FitError("blocks need the same seeds at every batch size; fit without blocks")
    batch = np.array([float(u.batch) for u in usable for _ in u.seen])
    n = np.array([value if value is not None else u.limit for u in usable for value in u.seen], dtype=float)
    hidden = np.array([value is None for u in usable for value in u.seen])
    seeds = np.array([j for u in usable for j in range(len(u.seen))]) if blocks else np.zeros(len(n), dtype=int)
    return batch, n, hidden, _contrasts(seeds)


def _imputed(
    y: np.ndarray, hidden: np.ndarray, inverse: np.ndarray, effects: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms with censored ones at their mean beyond the limit, and the parameters [1 + seeds] fitted to them."""
    limits, y = y[hidden], y.copy()
    theta = _minimise(y, inverse, effects, *_start(inverse, np.exp(y)))
    for _ in range(EM_STEPS if hidden.any() else 0):
        fitted = _model(theta, inverse, effects)
        seen = (y - fitted)[~hidden]
        scale = math.sqrt(float(seen @ seen) / max(len(seen) - len(theta), 1)) + 1e-12
        beyond = (limits - fitted[hidden]) / scale
        density = -(beyond**2) / 2 - math.log(2 * math.pi) / 2
        mean = fitted[hidden] + scale * np.exp(density - scipy.special.log_ndtr(-beyond))
        settled = np.allclose(mean, y[hidden], rtol=0, atol=1e-10)
        y[hidden] = mean
        theta = _minimise(y, inverse, effects, theta[0], theta[1])
        if settled:
            break
    return y, theta


def _contrasts(seeds: np.ndarray) -> np.ndarray:
    """Columns [runs, seeds - 1] of seed effects that sum to zero."""
    count = int(seeds.max()) + 1
    table = np.vstack([np.eye(count - 1), -np.ones(count - 1)]) if count > 1 else np.zeros((1, 0))
    return table[seeds]


def _start(inverse: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    """A linear fit of n on 1/M with relative weights, its predictions positive."""
    design = np.stack([np.ones_like(n), inverse], 1) / n[:, None]
    floor, sensitivity = np.linalg.lstsq(design, np.ones_like(n), rcond=None)[0]
    if np.any(floor + sensitivity * inverse <= 0):
        floor, sensitivity = float(np.exp(np.mean(np.log(n)))), 0.0
    return float(floor), float(sensitivity)


def _model(theta: np.ndarray, inverse: np.ndarray, effects: np.ndarray) -> np.ndarray:
    return np.log(theta[0] + theta[1] * inverse) + effects @ theta[2:]


def _jacobian(theta: np.ndarray, inverse: np.ndarray, effects: np.ndarray) -> np.ndarray:
    mean = theta[0] + theta[1] * inverse
    return np.concatenate([np.stack([1 / mean, inverse / mean], 1), effects], 1)


def _minimise(
    y: np.ndarray, inverse: np.ndarray, effects: np.ndarray, floor: float, sensitivity: float
) -> np.ndarray:
    """Least squares from a start at which all predictions are positive; steps to where one is not are shortened."""
    start = np.concatenate([[floor, sensitivity], np.zeros(effects.shape[1])])

    def residual(theta: np.ndarray, inverse: np.ndarray, effects: np.ndarray) -> np.ndarray:
        return _model(theta, inverse, effects) - y

    options = {"x_scale": "jac", "ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "args": (inverse, effects)}
    with np.errstate(invalid="ignore", divide="ignore"):
        return scipy.optimize.least_squares(residual, start, _jacobian, **options).x


def _lack_of_fit(y: np.ndarray, batch: np.ndarray, effects: np.ndarray, residual: np.ndarray) -> float | None:
    """p-value of the scatter about the curve against the scatter with one free mean per batch size."""
    levels, place = np.unique(batch, return_inverse=True)
    free = np.concatenate([np.eye(len(levels))[place], effects], 1)
    pure = y - free @ np.linalg.lstsq(free, y, rcond=None)[0]
    spare, repeats = len(levels) - 2, len(y) - free.shape[1]
    if spare < 1 or repeats < 1:
        return None
    within = float(pure @ pure)
    between = max(float(residual @ residual) - within, 0.0)
    rounding = 1e-18 * (len(y) + float(y @ y))
    if within <= 1e-6 * rounding:
        return 1.0 if between <= rounding else 0.0
    return float(scipy.special.fdtrc(spare, repeats, (between / spare) / (within / repeats)))


def _identified(fit: InverseLawFit, usable: list[Updates]) -> None:
    """Two batch sizes fit anything: refuse what they cannot tell from a constant."""
    if len(usable) > 2:
        return
    small, large = usable
    low = fit.sensitivity_interval().low if fit.degrees else fit.sensitivity
    if low <= 0:
        raise FitError(
            f"batch sizes {small.batch} and {large.batch} need {_shown(small)} and {_shown(large)} updates, which "
            f"does not tell the noise sensitivity from zero; add a smaller batch size or more seeds"
        )


def _shown(u: Updates) -> str:
    return "/".join("censored" if n is None else f"{n:g}" for n in u.seen)
