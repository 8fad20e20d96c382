"""A choice of batch size: what measurements say by the law and the knee, as a table and a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from suite.batch_size.knee import Knee, fit_knee
from suite.batch_size.law import InverseLawFit, Updates, fit_inverse_law
from suite.claims.intervals import Interval, quantile
from suite.lazy import Axes, pd


@dataclass(frozen=True)
class Choice:
    """What the method found. ``seconds`` per update and ``predicted`` seconds to converge are by batch size."""

    batch: int
    seconds: Mapping[int, float]
    predicted: Mapping[int, float]
    law: InverseLawFit
    knee: Knee
    counted: tuple[Updates, ...]  # step 2
    unfinished: str = ""  # what the time budget left undone
    left_out: Mapping[int, str] = field(default_factory=dict)  # batch sizes that cannot train, and why
    errors: Mapping[int, float] = field(default_factory=dict)  # standard errors of ``seconds``

    def interval(self, batch: int, confidence: float = 0.95) -> Interval:
        """Predicted seconds to converge: what the fitted law leaves open, times the seconds per update."""
        found, spent = self.law.prediction_interval(batch, confidence), self.seconds[batch]
        return Interval(found.mean * spent, max(0.0, found.low * spent), found.high * spent, found.n)

    def tied(self, confidence: float = 0.95) -> tuple[int, ...]:
        """Batch sizes whose seconds to converge cannot be told from those of the chosen one.

        Twice the same law predicts both, so what it leaves open of their difference counts, and the timing's scatter.
        """
        if self.law.degrees < 1:
            return tuple(batch for batch in self.predicted if batch != self.batch)
        reach = quantile(self.law.degrees, 1 - confidence)
        (floor, both), (_, sensitivity) = self.law.covariance
        best, spent = self.batch, self.seconds[self.batch]
        timing = (self.law.predict(best) * self.errors.get(best, 0.0)) ** 2
        found = []
        for batch, seconds in self.seconds.items():
            # the difference of predicted seconds is linear in the two constants, with these slopes
            a, b = seconds - spent, seconds / batch - spent / best
            variance = a * a * floor + 2 * a * b * both + b * b * sensitivity + timing
            variance += (self.law.predict(batch) * self.errors.get(batch, 0.0)) ** 2
            difference = self.predicted[batch] - self.predicted[best]
            if batch != best and difference <= reach * math.sqrt(max(variance, 0.0)):
                found.append(batch)
        return tuple(sorted(found))

    def frame(self) -> pd.DataFrame:
        """A row for each batch size timed; seconds and updates, with the limits of their 95% intervals."""
        tied = self.tied()
        seen = {updates.batch: updates.seen for updates in self.counted}
        rows = []
        for batch, spent in sorted(self.seconds.items()):
            updates, total = self.law.prediction_interval(batch), self.interval(batch)
            row = {"batch": batch, "seconds per update": spent, "updates counted": seen.get(batch, ())}
            row |= {"updates": updates.mean, "updates from": max(0.0, updates.low), "updates to": updates.high}
            row |= {"seconds": total.mean, "seconds from": total.low, "seconds to": total.high}
            rows.append({**row, "chosen": batch == self.batch, "tied": batch in tied})
        return pd.DataFrame(rows)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Predicted seconds to converge over batch size, with 95% intervals, the chosen one marked."""
        from matplotlib.figure import Figure

        axes = Figure(layout="constrained").subplots() if axes is None else axes
        batches = sorted(self.seconds)
        middle = [self.predicted[batch] for batch in batches]
        limits = [self.interval(batch) for batch in batches]
        if all(math.isfinite(limit.high) for limit in limits):
            axes.fill_between(
                batches, [i.low for i in limits], [i.high for i in limits], alpha=0.2, label="95% interval"
            )
        axes.plot(batches, middle, "o-", label="predicted")
        axes.plot([self.batch], [self.predicted[self.batch]], "s", markersize=9, label=f"chosen: {self.batch}")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("batch size")
        axes.set_ylabel("seconds to converge")
        axes.legend()
        return axes

    @property
    def closed_form(self) -> float:
        """M_opt of Eq. 8: the knee."""
        return self.knee.knee


def choose(
    seconds: Mapping[int, float],
    counted: Sequence[Updates],
    *,
    blocks: bool = False,
    errors: Mapping[int, float] | None = None,
) -> Choice:
    """Steps 3 and 4 on measurements: ``seconds`` per update by batch size, with ``errors``, and counted updates.

    Args:
        seconds: of an update, by batch size; two sizes or more.
        counted: updates to the threshold at two sizes or more.
        blocks: whether place j of every count is the same seed j, whose effect is then fitted too.
        errors: standard errors of ``seconds``, for ``tied``.

    Returns:
        The batch size with the least predicted seconds, and what that rests on.

    Raises:
        FitError: the counts do not determine the law (see :func:`suite.batch_size.law.fit_inverse_law`).
        ValueError: fewer than two batch sizes timed, or a law that predicts no updates at one of them.

    Example:
        >>> counted = [Updates(4, (352, 348)), Updates(256, (103, 105))]
        >>> choose({4: 1.0, 16: 1.0, 64: 2.5, 256: 8.0}, counted).batch
        16

    Source: ``reference_impls.inverse_law_model``, Eqs. 2, 4 and 8.
    """
    law, knee = fit_inverse_law(counted, blocks=blocks), fit_knee(seconds)
    predicted = {batch: law.predict(batch) * spent for batch, spent in sorted(seconds.items())}
    if bad := [batch for batch, value in predicted.items() if value <= 0]:
        raise ValueError(
            f"the fitted law gives batch={bad[0]} no updates (N_inf={law.floor:.4g}, alpha={law.sensitivity:.4g}); "
            f"count updates at larger batch sizes too"
        )
    best = min(predicted, key=lambda batch: predicted[batch])
    return Choice(best, dict(seconds), predicted, law, knee, tuple(counted), errors=dict(errors or {}))
