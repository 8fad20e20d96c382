"""The four-step method of inverse_law: choose the batch size that trains a model in the least time.

    from suite.optim import choose_batch

    choice = choose_batch(make_model, loss, (inputs, targets), rate=0.05, threshold=0.3, budget=600)
    print(choice.batch, choice.frame())

1. over a range of batch sizes, measure the seconds of a few updates;
2. for at least two of them, count the updates to convergence;
3. fit N(M) = N_inf + alpha / M and Gamma(M) = gamma max(M, M_T);
4. take the batch size with the least N(M) T(M).

Step 4 compares the *measured* seconds of every batch size timed; the closed form (for one learner, the knee
M_T, Eq. 8) is given beside it. On several learners pass ``law`` and a ``System`` to
:func:`reference_impls.inverse_law_model.optimal_batch`.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from suite.batch_size.knee import Knee, fit_knee, standard_errors, time_updates, typical
from suite.batch_size.law import FitError, InverseLawFit, Updates, fit_inverse_law
from suite.batch_size.requests import check_numbers, check_pair, check_sizes
from suite.batch_size.trainer import Diverged, Trainer
from suite.claims.intervals import Interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from torch import Tensor, nn

BETWEEN_LINES = 0.5  # seconds between two lines of progress on a terminal


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
        from scipy import stats

        if self.law.degrees < 1:
            return tuple(batch for batch in self.predicted if batch != self.batch)
        quantile = float(stats.t.ppf(0.5 + confidence / 2, self.law.degrees))
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
            if batch != best and difference <= quantile * math.sqrt(max(variance, 0.0)):
                found.append(batch)
        return tuple(sorted(found))

    def frame(self) -> pd.DataFrame:
        """A row for each batch size timed; seconds and updates, with the limits of their 95% intervals."""
        import pandas as pd

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

    Raises:
        FitError: the counts do not determine the law (see :func:`suite.batch_size.law.fit_inverse_law`).
        ValueError: fewer than two batch sizes timed, or a law that predicts no updates at one of them.
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


class Progress(NamedTuple):
    """Where the method stands, as told to ``callback``."""

    doing: str  # "timing", "counting" or "chosen"
    batch: int  # the size being timed or counted; at the end the one chosen
    done: int  # sizes timed, or runs counted
    of: int
    updates: int  # of the run being counted
    seconds: float  # since the start
    choice: Choice | None  # what the counts so far say, once two batch sizes have one


def choose_batch(
    make_model: Callable[[int], nn.Module],
    loss: Callable[[Tensor, Tensor], Tensor],
    data: tuple[Tensor, Tensor],
    *,
    rate: float,
    threshold: float,
    batches: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256),
    converge: Sequence[int] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    limit: int = 20_000,
    share: float = 0.2,
    growth: float = 0.01,
    rounds: int = 5,
    budget: float | None = None,
    callback: Callable[[Progress], Any] | None = None,
    memory: int | None = None,
) -> Choice:
    """Run the whole method with plain SGD on a user's model.

    Args:
        make_model: an initialised module from a seed, always of the same architecture.
        loss: mean loss of (outputs [b, ...], targets [b, ...]), never negative.
        data: (inputs [N, ...], targets [N, ...]) on the model's device; updates draw from all of it.
        rate: learning rate, the same at every batch size.
        threshold: of the mean loss, in evaluation mode, on a fixed random ``share`` of the data.
        batches: sizes to time and choose among; ``converge``: those to train to the threshold, by default the
            smallest, the middle and the largest.
        limit: updates after which a run is censored.
        budget: seconds after which the counts so far decide; runs are counted seed by seed, large batches first,
            so an answer is there early and its intervals narrow.
        callback: is told the progress; by default it is shown where standard error is a terminal.
        memory: bytes on the GPU that an update may need; by default what it has. Sizes that need more are left out.

    Raises:
        ValueError: sizes that do not fit the data, fewer than two to converge, no seed or round, or a negative loss.
        TypeError: ``data`` is no pair of tensors.
        FitError: the law cannot be fitted, e.g. since most runs were censored, or the budget was too short for two
            batch sizes; the message says what to add.
    """
    check_pair(data)
    check_sizes(batches, converge, len(data[0]), len(data[1]))
    check_numbers(
        rate=rate, threshold=threshold, seeds=seeds, limit=limit, growth=growth, rounds=rounds, budget=budget
    )
    sizes = sorted(set(batches))
    method = Method(Trainer(make_model, loss, data, rate, share), tuple(seeds), threshold, limit, budget, callback)
    method.check_models()
    fitting = method.fitting(sizes, memory)
    method.time(fitting, rounds)
    chosen = converge or (fitting[0], fitting[len(fitting) // 2], fitting[-1])
    method.count(sorted(set(chosen) - set(method.left_out), reverse=True), growth)
    return method.answer()


class Method:
    """The steps under way."""

    def __init__(
        self,
        trainer: Trainer,
        seeds: tuple[int, ...],
        threshold: float,
        limit: int,
        budget: float | None,
        callback: Callable[[Progress], Any] | None,
    ):
        self.trainer, self.seeds, self.threshold, self.limit = trainer, seeds, threshold, limit
        self.began = time.monotonic()
        self.deadline = math.inf if budget is None else self.began + budget
        self.tell = callback or _shown
        self.left_out: dict[int, str] = {}
        self.seconds: dict[int, float] = {}
        self.errors: dict[int, float] = {}
        self.seen: dict[int, list[float | None]] = {}
        self.choice: Choice | None = None
        self.unfinished = ""

    def report(self, doing: str, batch: int, done: int, of: int, updates: int = 0) -> None:
        spent = time.monotonic() - self.began
        self.tell(Progress(doing, batch, done, of, updates, spent, self.choice))

    def check_models(self) -> None:
        """Raise ValueError where models begin below the threshold, or are one module handed out twice."""
        for seed in self.seeds if len(self.seeds) > 1 else self.seeds * 2:
            self.trainer.begin(seed)
            self.trainer.begins(self.threshold)

    def fitting(self, sizes: Sequence[int], memory: int | None) -> list[int]:
        """The sizes of which an update is possible, and fits into memory, found from the smallest on.

        Raises ValueError for fewer than two.
        """
        import torch

        self.trainer.begin(self.seeds[0])
        fits: list[int] = []
        failure: Exception | None = None
        for batch in sizes:
            try:
                needed = self.trainer.memory_of_update(batch)
            except torch.OutOfMemoryError as error:
                why = str(error).partition("\n")[0]
            except Exception as error:  # the model refuses this size, as batch norm does one example
                self.left_out[batch] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
                failure = error
                continue
            else:
                if memory is None or needed <= memory:
                    fits.append(batch)
                    continue
                why = f"an update needs {needed} bytes of memory={memory}"
            self.left_out |= dict.fromkeys([size for size in sizes if size >= batch], why)
            break
        self.require_two(fits, failure)
        return fits

    def require_two(self, sizes: Sequence[int], cause: Exception | None = None) -> None:
        """Raise ValueError unless two of the sizes are left."""
        if len(sizes) < 2:
            raise ValueError(f"fewer than two batch sizes can be trained with; left out: {self.left_out}") from cause

    def time(self, sizes: list[int], rounds: int) -> None:
        """Step 1, the sizes taking turns; within the budget at least one round."""
        trainer, position = self.trainer, dict.fromkeys(sizes, 0)

        def update(batch: int) -> None:
            trainer.state = trainer.advance(trainer.state, position[batch], position[batch] + 1, batch)
            position[batch] += 1

        taken: dict[int, list[float]] = {batch: [] for batch in sizes}
        for done in range(rounds):
            self.report("timing", sizes[0], done, rounds)
            found = time_updates(update, sizes, rounds=1, synchronise=trainer.synchronise)
            for batch, values in found.items():
                taken[batch] += values
            if time.monotonic() > self.deadline:
                break
        self.seconds, self.errors = typical(taken), standard_errors(taken)

    def count(self, sizes: list[int], growth: float) -> None:
        """Step 2, seed by seed, with a choice after each run that allows one."""
        self.seen = {batch: [] for batch in sizes}
        runs = [(seed, batch) for seed in self.seeds for batch in sizes]
        done = 0
        while runs:
            seed, batch = runs.pop(0)
            total = done + 1 + len(runs)
            watch = lambda updates, batch=batch, done=done, of=total: self.watch(batch, done, of, updates)
            try:
                found = self.trainer.count(seed, batch, self.threshold, growth, self.limit, watch)
            except TimeoutError:
                self.unfinished = f"{total - done} of {total} runs were not counted within the budget"
                return
            except Diverged as error:
                runs = self.without(batch, error, [(seed, other) for seed, other in runs if other > batch])
                continue
            done += 1
            self.seen[batch].append(found)
            self.choice = self.provisional()
            self.report("counting", batch, done, total)

    def without(self, batch: int, error: Diverged, runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The runs to go on with after one at ``batch`` diverged: with the next larger size in its place.

        At one rate smaller batches diverge first, so those below it are left out as well.
        """
        for size in [size for size in {*self.seconds, *self.seen} if size <= batch]:
            self.left_out[size] = str(error) if size == batch else f"below {batch}, where {error}"
            self.seconds.pop(size, None)
            self.seen.pop(size, None)
        self.require_two(list(self.seconds), error)
        spare = [size for size in sorted(self.seconds) if size not in self.seen]
        if spare:
            self.seen[spare[0]] = []
            runs = [(seed, spare[0]) for seed in self.seeds] + runs
        return runs

    def watch(self, batch: int, done: int, of: int, updates: int) -> None:
        """Report; raise TimeoutError once the budget is spent."""
        self.report("counting", batch, done, of, updates)
        if time.monotonic() > self.deadline:
            raise TimeoutError

    def counted(self) -> list[Updates]:
        return [Updates(batch, tuple(seen), float(self.limit)) for batch, seen in sorted(self.seen.items()) if seen]

    def provisional(self) -> Choice | None:
        """Steps 3 and 4 on the counts so far, once they allow it."""
        try:
            return choose(self.seconds, self.counted(), errors=self.errors)
        except ValueError:
            return None

    def answer(self) -> Choice:
        """Steps 3 and 4 on all counts."""
        try:
            choice = choose(self.seconds, self.counted(), errors=self.errors)
        except FitError as error:
            why = f"; {self.unfinished}" if self.unfinished else ""
            if not any(found for seen in self.seen.values() for found in seen):
                why += "; no run reached the threshold: raise it, the limit or the budget"
            raise FitError(f"step 3 with threshold={self.threshold} and limit={self.limit}: {error}{why}") from error
        self.choice = replace(choice, unfinished=self.unfinished, left_out=dict(self.left_out))
        self.report("chosen", choice.batch, 1, 1)
        return self.choice


def _shown(progress: Progress) -> None:
    """A line on standard error that is written over and over, where that is a terminal."""
    if not sys.stderr.isatty():
        return
    last = _shown.__dict__.get("at", -math.inf)
    ends = progress.doing == "chosen"
    if not ends and 0 <= progress.seconds - last < BETWEEN_LINES:
        return
    _shown.__dict__["at"] = -math.inf if ends else progress.seconds
    so_far = "" if progress.choice is None else f", so far batch size {progress.choice.batch}"
    what = f"{progress.doing} {progress.done}/{progress.of}: batch size {progress.batch}"
    tied = progress.choice.tied() if ends and progress.choice is not None else ()
    also = f", which {', '.join(map(str, tied))} cannot be told from" if tied else ""
    line = f"chose batch size {progress.batch}{also}" if ends else f"{what}, update {progress.updates}{so_far}"
    print(f"\r\x1b[K{progress.seconds:.0f} s  {line}", end="\n" if ends else "", file=sys.stderr, flush=True)
