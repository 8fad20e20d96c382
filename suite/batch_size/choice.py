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

from suite.batch_size.knee import Knee, fit_knee, time_updates, typical
from suite.batch_size.law import FitError, InverseLawFit, Updates, fit_inverse_law
from suite.batch_size.trainer import Trainer
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
    left_out: Mapping[int, str] = field(default_factory=dict)  # batch sizes that could not be timed, and why

    def interval(self, batch: int, confidence: float = 0.95) -> Interval:
        """Predicted seconds to converge: what the fitted law leaves open, times the seconds per update."""
        found, spent = self.law.prediction_interval(batch, confidence), self.seconds[batch]
        return Interval(found.mean * spent, max(0.0, found.low * spent), found.high * spent, found.n)

    def frame(self) -> pd.DataFrame:
        """A row for each batch size timed; seconds and updates, with the limits of their 95% intervals."""
        import pandas as pd

        seen = {updates.batch: updates.seen for updates in self.counted}
        rows = []
        for batch, spent in sorted(self.seconds.items()):
            updates, total = self.law.prediction_interval(batch), self.interval(batch)
            row = {"batch": batch, "seconds per update": spent, "updates counted": seen.get(batch, ())}
            row |= {"updates": updates.mean, "updates from": max(0.0, updates.low), "updates to": updates.high}
            row |= {"seconds": total.mean, "seconds from": total.low, "seconds to": total.high}
            rows.append({**row, "chosen": batch == self.batch})
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


def choose(seconds: Mapping[int, float], counted: Sequence[Updates], *, blocks: bool = False) -> Choice:
    """Steps 3 and 4 on measurements: ``seconds`` per update by batch size and counted updates.

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
    return Choice(min(predicted, key=lambda b: predicted[b]), dict(seconds), predicted, law, knee, tuple(counted))


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
    examples, sizes = len(data[0]), sorted(set(batches))
    if len(sizes) < 2 or sizes[0] < 1 or sizes[-1] > examples or len(data[1]) != examples:
        raise ValueError(f"batches={sizes} must be two or more sizes within the {examples} examples of the data")
    if converge is not None and len(set(converge)) < 2:
        raise ValueError(
            f"converge={sorted(set(converge))} must name at least two batch sizes; the law has two constants"
        )
    if len(seeds) < 1:
        raise ValueError("seeds=() must name at least one seed; updates are counted from each")
    if rounds < 1:
        raise ValueError(f"rounds={rounds} must be at least 1; the seconds of an update are measured in each")
    if budget is not None and not budget > 0:
        raise ValueError(f"budget={budget} must be a positive number of seconds")
    method = Method(Trainer(make_model, loss, data, rate, share), tuple(seeds), threshold, limit, budget, callback)
    fitting = method.fitting(sizes, memory)
    if len(fitting) < 2:
        raise ValueError(f"of batches={sizes} fewer than two fit into memory: {method.left_out}")
    method.time(fitting, rounds)
    chosen = converge or (fitting[0], fitting[len(fitting) // 2], fitting[-1])
    method.count(sorted(set(chosen) - set(method.left_out), reverse=True), growth)
    return method.answer()


def check_pair(data: object) -> None:
    """Raise TypeError for anything but a pair of tensors."""
    from torch import Tensor

    parts = data if isinstance(data, tuple | list) else (data,)
    if len(parts) != 2 or not all(isinstance(part, Tensor) for part in parts):
        raise TypeError(
            f"data must be two tensors (inputs, targets), not {', '.join(type(part).__name__ for part in parts)}; "
            f"torch.as_tensor makes one of an array, and torch.cat of a loader's batches"
        )


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
        self.seen: dict[int, list[float | None]] = {}
        self.choice: Choice | None = None
        self.unfinished = ""

    def report(self, doing: str, batch: int, done: int, of: int, updates: int = 0) -> None:
        spent = time.monotonic() - self.began
        self.tell(Progress(doing, batch, done, of, updates, spent, self.choice))

    def fitting(self, sizes: Sequence[int], memory: int | None) -> list[int]:
        """The sizes of which an update fits into memory, found from the smallest on."""
        import torch

        self.trainer.begin(self.seeds[0])
        fits: list[int] = []
        for batch in sizes:
            try:
                needed = self.trainer.memory_of_update(batch)
            except torch.OutOfMemoryError as error:
                why = str(error).partition("\n")[0]
            else:
                if memory is None or needed <= memory:
                    fits.append(batch)
                    continue
                why = f"an update needs {needed} bytes of memory={memory}"
            self.left_out |= dict.fromkeys([size for size in sizes if size >= batch], why)
            break
        return fits

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
        self.seconds = typical(taken)

    def count(self, sizes: list[int], growth: float) -> None:
        """Step 2, seed by seed, with a choice after each run that allows one."""
        self.seen = {batch: [] for batch in sizes}
        runs = [(seed, batch) for seed in self.seeds for batch in sizes]
        for done, (seed, batch) in enumerate(runs):
            watch = lambda updates, done=done, batch=batch: self.watch(batch, done, len(runs), updates)
            try:
                found = self.trainer.count(seed, batch, self.threshold, growth, self.limit, watch)
            except TimeoutError:
                self.unfinished = f"{len(runs) - done} of {len(runs)} runs were not counted within the budget"
                return
            self.seen[batch].append(found)
            self.choice = self.provisional()
            self.report("counting", batch, done + 1, len(runs))

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
            return choose(self.seconds, self.counted())
        except ValueError:
            return None

    def answer(self) -> Choice:
        """Steps 3 and 4 on all counts."""
        try:
            choice = choose(self.seconds, self.counted())
        except FitError as error:
            why = f"; {self.unfinished}" if self.unfinished else ""
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
    line = f"chose batch size {progress.batch}" if ends else f"{what}, update {progress.updates}{so_far}"
    print(f"\r\x1b[K{progress.seconds:.0f} s  {line}", end="\n" if ends else "", file=sys.stderr, flush=True)
