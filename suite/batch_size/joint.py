"""Updates to a threshold over batch size M and learning rate eta together, and the fit of this law.

A loss that relaxes exponentially, with the time t = updates x rate, to a floor proportional to rate / M reaches a
threshold after

    N(M, eta) = (t0 - tau ln(1 - kappa eta / M)) / eta        updates.

The first order in kappa eta / M is the inverse law: N_inf = t0 / eta, alpha = tau kappa whatever the rate. Where
kappa eta / M reaches 1 the floor of the loss is the threshold, and no number of updates suffices: at a rate the batch
must have more than kappa eta examples. The noise scale rate / M is that of Smith and Le (2018); the number of steps
of McCandlish et al. (2018), S_min (1 + B_noise / B), is the first order at one rate.

The fit is weighted least squares on the means, over seeds, of the logarithms of the updates. A point at which a seed
did not arrive within its limit is a bound: a law that foretells fewer updates misfits there, one that foretells more
does not. Where the counts leave kappa and tau apart undetermined (far from the pole only their product shows), a weak
penalty holds tau near t0, a factor e at the price of one standard error; the determined ones lie within it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from suite.batch_size.law import FitError, Updates
from suite.lazy import np

Counts = Mapping[float, Sequence[Updates]]  # by learning rate
LEAST_ERROR = 0.01  # of a mean log count: below it the form of the law, not the seeds, decides how well it fits
STARTS = (0.02, 0.1, 0.4, 0.7, 0.95)  # shares of the largest kappa from which the search begins
FARTHEST = 0.999  # of the kappa at which the law would not reach a point that was reached
FIRST_ORDER = 1e-5  # of the same, below which the logarithm is its first order
NEVER = 1e-9  # distance from the pole that counts as none
PENALTY = 1.0  # log tau / t0 at the price of one standard error


@dataclass(frozen=True)
class JointLaw:
    """The constants of one network and threshold.

    Attributes:
        way: t0, updates x rate to the threshold with exact gradients.
        relaxation: tau, updates x rate in which the distance to the floor falls by the factor e.
        noise: kappa, examples per unit of rate at which the floor is the threshold.
    """

    way: float
    relaxation: float
    noise: float

    def load(self, batch: float, rate: float) -> float:
        """kappa rate / M, the floor of the loss over the threshold."""
        return self.noise * rate / batch

    def smallest(self, rate: float) -> float:
        """The batch size above which the threshold is reached at this rate."""
        return self.noise * rate

    def predict(self, batch: float, rate: float) -> float:
        """Updates to the threshold, infinite where it is never reached.

        >>> law = JointLaw(way=5.0, relaxation=6.0, noise=20.0)
        >>> round(law.predict(64, 0.05))
        102
        >>> law.predict(1, 0.05)
        inf
        """
        load = self.load(batch, rate)
        return math.inf if load >= 1 else (self.way - self.relaxation * math.log1p(-load)) / rate


class _Points(NamedTuple):
    """Rates, batch sizes, means of log updates, their standard errors, and where a limit stands for one; all [P]."""

    rate: np.ndarray
    batch: np.ndarray
    mean: np.ndarray
    error: np.ndarray
    limited: np.ndarray


def arrived(counts: Counts) -> list[tuple[float, Updates]]:
    """The points (rate, updates) at which every seed arrived."""
    return [(rate, u) for rate, curve in sorted(counts.items()) for u in curve if not u.censored]


def fit_joint_law(counts: Counts, *, pole: bool = True) -> JointLaw:
    """Fit t0, tau and kappa.

    Args:
        counts: updates to one threshold by learning rate; the rates need not share batch sizes.
        pole: without it kappa is held near 0, which leaves the inverse law of all rates, t0 / eta + tau kappa / M.

    Raises:
        FitError: fewer than two points at which every seed arrived.
    """
    from scipy.optimize import least_squares

    points = _points(counts)
    ratio = points.rate / points.batch  # [P]
    top = float(ratio[~points.limited].max())

    def residuals(theta: np.ndarray) -> np.ndarray:
        rest = np.maximum(1 - theta[2] * ratio / top, NEVER)  # [P], how far a point is from the pole
        times = np.exp(theta[0]) - np.exp(theta[1]) * np.log(rest)
        misfit = (np.log(times / points.rate) - points.mean) / points.error
        bounded = np.where(rest > NEVER, np.minimum(misfit, 0), 0)
        return np.append(np.where(points.limited, bounded, misfit), pole * (theta[1] - theta[0]) / PENALTY)

    shortest = math.log((np.exp(points.mean) * points.rate).min())
    bounds = [-np.inf, -np.inf, 0.0], [np.inf, np.inf, FARTHEST if pole else FIRST_ORDER]
    starts = (
        [(shortest, share) for share in STARTS] if pole else [(shortest - math.log(FIRST_ORDER), FIRST_ORDER / 2)]
    )
    fits = [least_squares(residuals, [shortest, tau, share], bounds=bounds) for tau, share in starts]
    best = min(fits, key=lambda fit: fit.cost)
    return JointLaw(math.exp(best.x[0]), math.exp(best.x[1]), float(best.x[2]) / top)


def _points(counts: Counts) -> _Points:
    """The points to fit. A point's squared error is half its own seeds' and half that of the median point."""
    found = [(rate, u) for rate, curve in sorted(counts.items()) for u in curve]
    limited = np.array([u.censored > 0 for _, u in found], dtype=bool)
    if (usable := int((~limited).sum())) < 2:
        raise FitError(f"the joint law needs two points at which every seed arrived, not {usable}; count at others")
    logs = [np.log([n or u.limit or math.nan for n in u.seen]) for _, u in found]
    own = np.array([np.std(each, ddof=1) / math.sqrt(len(each)) if len(each) > 1 else 0.0 for each in logs])
    error = np.sqrt((own**2 + np.median(own[~limited]) ** 2) / 2 + LEAST_ERROR**2)
    return _Points(
        np.array([rate for rate, _ in found]),
        np.array([float(u.batch) for _, u in found]),
        np.array([float(np.mean(each)) for each in logs]),
        error,
        limited,
    )
