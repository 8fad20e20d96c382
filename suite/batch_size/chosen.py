"""A choice of batch size: what measurements say by the law and the knee, as a table and a picture.

Seconds per update as a function of batch size: a few timed updates and the knee of inverse_law's Eq. 4.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median, stdev

from suite.batch_size.law import InverseLawFit, Updates, fit_inverse_law
from suite.claims.intervals import Interval, quantile
from suite.lazy import Axes, pd


@dataclass(frozen=True)
class Knee:
    """Gamma(M) = ``seconds_per_example`` max(M, ``knee``), fitted; ``misfit`` is the largest relative deviation.

    A knee at the smallest or largest batch size timed lies there or beyond.
    """

    seconds_per_example: float
    knee: float
    misfit: float

    def seconds(self, batch: float) -> float:
        return self.seconds_per_example * max(batch, self.knee)


def fit_knee(seconds: Mapping[int, float]) -> Knee:
    """Fit Eq. 4 to seconds per update by batch size, least squares on logarithms.

    For a knee between two neighbouring batch sizes both constants have a closed form: the batch sizes below it
    share one mean, those above it another. So all positions are tried and the least misfit is exact.

    Raises:
        ValueError: fewer than two batch sizes, or a time that is not positive and finite.

    Example:
        >>> round(fit_knee({1: 2.0, 8: 2.0, 64: 8.0, 128: 16.0}).knee)
        16

    Source: ``reference_impls.inverse_law_model``, Eq. 4.
    """
    if len(seconds) < 2 or any(not 0 < number < math.inf for number in (*seconds, *seconds.values())):
        raise ValueError(f"a knee needs positive times of at least two batch sizes, not {dict(seconds)}")
    batches = sorted(seconds)
    log_batch = [math.log(b) for b in batches]
    log_time = [math.log(seconds[b]) for b in batches]
    best: tuple[float, float, float] | None = None
    for flat in range(1, len(batches) + 1):  # batch sizes at or below the knee
        level = math.fsum(log_time[:flat]) / flat
        above = range(flat, len(batches))
        if above:
            rate = math.fsum(log_time[i] - log_batch[i] for i in above) / len(above)
            corner = min(max(level - rate, log_batch[flat - 1]), log_batch[flat])
        else:
            corner = log_batch[-1]
        residual = [t - max(b, corner) for b, t in zip(log_batch, log_time, strict=True)]
        gamma = math.fsum(residual) / len(residual)
        loss = math.fsum((r - gamma) ** 2 for r in residual)
        if best is None or loss < best[0] - 1e-15:
            best = loss, gamma, corner
    assert best is not None
    _, gamma, corner = best
    fitted = Knee(math.exp(gamma), math.exp(corner), 0.0)
    return replace(fitted, misfit=max(abs(fitted.seconds(b) / seconds[b] - 1) for b in batches))


def time_updates(
    update: Callable[[int], None],
    batches: Sequence[int],
    *,
    rounds: int = 5,
    seconds_each: float = 0.02,
    synchronise: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, list[float]]:
    """Seconds per update at each batch size: ``rounds`` values each, the batch sizes taking turns.

    ``update(batch)`` makes one update. Each value averages as many updates as fill about ``seconds_each``.
    Turns are taken so that a slow spell of the machine falls on all batch sizes alike. ``synchronise`` waits
    for an accelerator. ``clock`` gives seconds; ``time.thread_time`` leaves out what other processes take when
    one thread does all the work.
    """
    counts: dict[int, int] = {}
    for batch in batches:
        update(batch)  # warm up: allocation, kernels chosen
        synchronise()
        began = clock()
        update(batch)
        synchronise()
        counts[batch] = max(1, math.ceil(seconds_each / max(clock() - began, 1e-9)))
    taken: dict[int, list[float]] = {batch: [] for batch in batches}
    for _ in range(rounds):
        for batch, count in counts.items():
            synchronise()
            began = clock()
            for _ in range(count):
                update(batch)
            synchronise()
            taken[batch].append((clock() - began) / count)
    return taken


def typical(taken: Mapping[int, list[float]]) -> dict[int, float]:
    """The median of each batch size's values: a spell of another process moves a mean, not a median."""
    return {batch: median(values) for batch, values in taken.items()}


def standard_errors(taken: Mapping[int, list[float]]) -> dict[int, float]:
    """Of each batch size's median; none is known of a single value."""
    factor = math.sqrt(math.pi / 2)  # of a median over a mean, for normal values
    return {
        batch: factor * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
        for batch, values in taken.items()
    }


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
    left_out: Mapping[int, str] = field(default_factory=dict)  # batch sizes that do not arrive, and why
    errors: Mapping[int, float] = field(default_factory=dict)  # standard errors of ``seconds``

    def interval(self, batch: int, confidence: float = 0.95) -> Interval:
        """Predicted seconds to converge: what the fitted law leaves open, times the seconds per update."""
        found, spent = self.law.prediction_interval(batch, confidence), self.seconds[batch]
        return Interval(found.mean * spent, max(0.0, found.low * spent), found.high * spent, found.n, found.freedom)

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
        axes.set(yscale="log", xlabel="batch size", ylabel="seconds to converge")
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
        The batch size with the least predicted seconds, and what that rests on. A size of which no run arrived is in
        ``left_out``, and so are smaller ones where none of those arrived.

    Raises:
        FitError: the counts do not determine the law (see :func:`suite.batch_size.law.fit_inverse_law`).
        ValueError: fewer than two batch sizes timed, none of them one that arrives, or a law that predicts no updates
            at one of them.

    Example:
        >>> counted = [Updates(4, (352, 348)), Updates(256, (103, 105))]
        >>> choose({4: 1.0, 16: 1.0, 64: 2.5, 256: 8.0}, counted).batch
        16

    Source: ``reference_impls.inverse_law_model``, Eqs. 2, 4 and 8.
    """
    law, knee = fit_inverse_law(counted, blocks=blocks), fit_knee(seconds)
    # The law is fitted to sizes that arrive. A smaller one has more noise, and may never do so.
    never = max((batch for batch in law.left_out if batch < law.batches[0]), default=0)
    out = [batch for batch in seconds if batch in law.left_out or batch < never]
    able = {batch: spent for batch, spent in sorted(seconds.items()) if batch not in out}
    if not able:
        raise ValueError(f"of the batch sizes timed, {sorted(out)}, none is one that arrives")
    predicted = {batch: law.predict(batch) * spent for batch, spent in able.items()}
    if bad := [batch for batch, value in predicted.items() if value <= 0]:
        raise ValueError(
            f"the fitted law gives batch={bad[0]} no updates (N_inf={law.floor:.4g}, alpha={law.sensitivity:.4g}); "
            f"count updates at that batch size too"
        )
    best = min(predicted, key=lambda batch: predicted[batch])
    left_out = dict.fromkeys(out, "no run of it, or of a larger size, arrived within its limit")
    return Choice(best, able, predicted, law, knee, tuple(counted), left_out=left_out, errors=dict(errors or {}))
