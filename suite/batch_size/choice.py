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

Refusals of what cannot be measured, before anything is timed.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, NamedTuple

from suite.batch_size.chosen import Choice, choose, standard_errors, time_updates, typical
from suite.batch_size.law import FitError, Updates
from suite.batch_size.trainer import Diverged, Trainer, check_positive
from suite.lazy import torch


def check_pair(data: object) -> None:
    """Raise TypeError for anything but a pair of tensors."""
    parts = data if isinstance(data, tuple | list) else (data,)
    if len(parts) != 2 or not all(isinstance(part, torch.Tensor) for part in parts):
        raise TypeError(
            f"data must be two tensors (inputs, targets), not {', '.join(type(part).__name__ for part in parts)}; "
            f"torch.as_tensor makes one of an array, and torch.cat of a loader's batches"
        )


def check_sizes(batches: Sequence[int], converge: Sequence[int] | None, examples: int, targets: int) -> None:
    """Raise ValueError for sizes that cannot be timed, or counted at."""
    if targets != examples:
        raise ValueError(f"data has {examples} inputs and {targets} targets; every input needs its own")
    for name, sizes in (("batches", batches), ("converge", converge or ())):
        if odd := [size for size in sizes if not isinstance(size, Integral) or isinstance(size, bool)]:
            raise ValueError(f"{name} has {odd[0]!r}; a batch size is a whole number of examples")
    sizes = sorted(set(batches))
    if len(sizes) < 2 or sizes[0] < 1 or sizes[-1] > examples:
        raise ValueError(f"batches={sizes} must be two or more sizes within the {examples} examples of the data")
    if converge is None:
        return
    if len(set(converge)) < 2:
        raise ValueError(
            f"converge={sorted(set(converge))} must name at least two batch sizes; the law has two constants"
        )
    if not 1 <= min(converge) <= max(converge) <= examples:
        raise ValueError(f"converge={sorted(set(converge))} must lie within the {examples} examples of the data")


def listed(name: str, numbers: Iterable[Any]) -> tuple[Any, ...]:
    """The numbers of a parameter. Raises ValueError for a number in their place."""
    if not isinstance(numbers, Iterable):
        raise ValueError(f"{name}={numbers!r} must be a sequence of numbers")
    return tuple(numbers)


BETWEEN_LINES = 0.5  # seconds between two lines of progress on a terminal


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
    make_model: Callable[[int], torch.nn.Module],
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    data: tuple[torch.Tensor, torch.Tensor],
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
    """Measure which batch size trains a model in the least time, by plain SGD.

    Args:
        make_model: an initialised module from a seed, always of the same architecture.
        loss: mean loss of (outputs [b, ...], targets [b, ...]), 0-d, never negative.
        data: (inputs [N, ...], targets [N, ...]) on the model's device; updates draw from all of it.
        rate: learning rate, the same at every batch size.
        threshold: of the mean loss, in evaluation mode, on a fixed random ``share`` of the data.
        batches: sizes to time and choose among; ``converge``: those to train to the threshold, by default the
            smallest, the middle and the largest.
        seeds: of the runs that are counted at each of these sizes; different ones.
        limit: updates after which a run is censored.
        share: of the data that is tested on, in (0, 1].
        growth: updates between two tests, as a fraction of those so far.
        rounds: in which the seconds of an update are measured.
        budget: seconds after which the counts so far decide; runs are counted seed by seed, large batches first,
            so an answer is there early and its intervals narrow.
        callback: is told the progress; by default it is shown where standard error is a terminal.
        memory: bytes on the GPU that an update may need; by default what it has. Sizes that need more are left out.

    Returns:
        The choice: ``batch``, ``tied()`` with it, ``predicted`` seconds and the law; sizes that diverge, that never
        arrive or that the model refuses are ``left_out``, with the reason.

    Raises:
        ValueError: before anything is timed: sizes that do not fit the data, fewer than two to converge, equal seeds,
            numbers out of range, a threshold that the untrained model meets, one module handed out twice. Later:
            fewer than two sizes that can be trained, or a negative loss.
        TypeError: ``data`` is no pair of tensors.
        FitError: the law cannot be fitted, e.g. since most runs were censored, or the budget was too short for two
            batch sizes; the message says what to add.

    Example:
        >>> import torch
        >>> generator = torch.Generator().manual_seed(0)
        >>> inputs = torch.randn(200, 5, generator=generator)  # [N, 5]
        >>> targets = inputs.sum(1, keepdim=True) + torch.randn(200, 1, generator=generator)  # [N, 1]
        >>> def make_model(seed):
        ...     torch.manual_seed(seed)
        ...     return torch.nn.Linear(5, 1)
        >>> loss = torch.nn.functional.mse_loss
        >>> found = choose_batch(make_model, loss, (inputs, targets), rate=0.05, threshold=1.2, batches=(1, 4, 32))
        >>> found.batch in (1, 4, 32)
        True

    Source: ``reference_impls.inverse_law_model``, Eqs. 2, 4 and 8, and the method's four steps.
    """
    check_pair(data)
    batches, converge = listed("batches", batches), None if converge is None else listed("converge", converge)
    check_sizes(batches, converge, len(data[0]), len(data[1]))
    if not isinstance(memory, Real | None):
        raise ValueError(f"memory={memory!r} must be a number of bytes")
    trainer = Trainer(make_model, loss, data, rate, share)
    method = Method(trainer, listed("seeds", seeds), threshold, limit, growth, rounds, budget, callback)
    method.check_models()
    fitting = method.fitting(sorted(set(batches)), memory)
    method.time(fitting)
    chosen = converge or (fitting[0], fitting[len(fitting) // 2], fitting[-1])
    method.count(sorted(set(chosen) - set(method.left_out), reverse=True))
    return method.answer()


class Method:
    """The steps under way. Raises ValueError for numbers with which nothing can be measured."""

    def __init__(
        self,
        trainer: Trainer,
        seeds: tuple[int, ...],
        threshold: float,
        limit: int,
        growth: float,
        rounds: int,
        budget: float | None,
        callback: Callable[[Progress], Any] | None,
    ):
        check_positive("threshold", threshold)
        if len(seeds) < 1:
            raise ValueError("seeds=() must name at least one seed; updates are counted from each")
        if odd := [seed for seed in seeds if not isinstance(seed, Integral)]:
            raise ValueError(f"seeds has {odd[0]!r}; a seed is a whole number")
        if len(set(seeds)) < len(seeds):
            raise ValueError(f"seeds={seeds} repeat; equal seeds give the same run again and no scatter")
        for name, value in (("limit", limit), ("rounds", rounds)):
            if not isinstance(value, Integral) or value < 1:  # an infinite limit would never censor a run
                raise ValueError(f"{name}={value!r} must be a whole number, at least 1")
        if growth != 0:
            check_positive("growth", growth)
        if budget not in (None, math.inf):
            check_positive("budget", budget)
        self.trainer, self.seeds, self.threshold, self.limit = trainer, tuple(map(int, seeds)), threshold, limit
        self.growth, self.rounds = growth, rounds
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

    def time(self, sizes: list[int]) -> None:
        """Step 1, the sizes taking turns; within the budget at least one round."""
        trainer, position = self.trainer, dict.fromkeys(sizes, 0)

        def update(batch: int) -> None:
            trainer.state = trainer.advance(trainer.state, position[batch], position[batch] + 1, batch)
            position[batch] += 1

        taken: dict[int, list[float]] = {batch: [] for batch in sizes}
        for done in range(self.rounds):
            self.report("timing", sizes[0], done, self.rounds)
            found = time_updates(update, sizes, rounds=1, synchronise=trainer.synchronise)
            for batch, values in found.items():
                taken[batch] += values
            if time.monotonic() > self.deadline:
                break
        self.seconds, self.errors = typical(taken), standard_errors(taken)

    def count(self, sizes: list[int]) -> None:
        """Step 2, seed by seed, with a choice after each run that allows one."""
        self.seen = {batch: [] for batch in sizes}
        runs = [(seed, batch) for seed in self.seeds for batch in sizes]
        done = 0
        while runs:
            seed, batch = runs.pop(0)
            total = done + 1 + len(runs)
            watch = lambda updates, batch=batch, done=done, of=total: self.watch(batch, done, of, updates)
            try:
                found = self.trainer.count(seed, batch, self.threshold, self.growth, self.limit, watch)
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
        self.choice = replace(choice, unfinished=self.unfinished, left_out={**choice.left_out, **self.left_out})
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
