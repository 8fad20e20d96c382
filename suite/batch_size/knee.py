"""Seconds per update as a function of batch size: a few timed updates and the knee of inverse_law's Eq. 4."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, stdev


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
    """
    if len(seconds) < 2 or any(not 0 < s < math.inf for s in seconds.values()):
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
    misfit = max(abs(fitted.seconds(b) / seconds[b] - 1) for b in batches)
    return Knee(fitted.seconds_per_example, fitted.knee, misfit)


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
