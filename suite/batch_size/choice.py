"""The four-step method of inverse_law: choose the batch size that trains a model in the least time.

    from suite.batch_choice import choose_batch

    choice = choose_batch(make_model, loss, (inputs, targets), rate=0.05, threshold=0.3)
    print(choice.batch, choice.law, choice.knee)

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suite.batch_size.knee import Knee, fit_knee, time_updates, typical
from suite.batch_size.law import FitError, InverseLawFit, Updates, fit_inverse_law
from suite.batch_size.threshold import Monitor, Search, drive
from suite.training.reading import Reading, read_loss

if TYPE_CHECKING:
    from torch import Tensor, nn

TEST_CHUNK = 500  # examples of a test read at a time


@dataclass(frozen=True)
class Choice:
    """What the method found. ``seconds`` per update and ``predicted`` seconds to converge are by batch size."""

    batch: int
    seconds: Mapping[int, float]
    predicted: Mapping[int, float]
    law: InverseLawFit
    knee: Knee
    counted: tuple[Updates, ...]  # step 2

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
) -> Choice:
    """Run the whole method with plain SGD on a user's model.

    Args:
        make_model: an initialised module from a seed, always of the same architecture, without batch norm or
            dropout (their state would make a replay differ).
        loss: mean loss of (outputs [b, ...], targets [b, ...]), never negative.
        data: (inputs [N, ...], targets [N, ...]) on the model's device; updates draw from all of it.
        rate: learning rate, the same at every batch size.
        threshold: of the mean loss on a fixed random ``share`` of the data.
        batches: sizes to time and choose among; ``converge``: those to train to the threshold, by default the
            smallest, the middle and the largest.
        limit: updates after which a run is censored.

    Raises:
        ValueError: sizes that do not fit the data, fewer than two to converge, or a negative loss.
        FitError: the law cannot be fitted, e.g. since most runs were censored; the message says what to add.
    """
    sizes = sorted(set(batches))
    chosen = sorted(set(converge or (sizes[0], sizes[len(sizes) // 2], sizes[-1])))
    examples = len(data[0])
    if len(sizes) < 2 or sizes[0] < 1 or sizes[-1] > examples or len(data[1]) != examples:
        raise ValueError(f"batches={sizes} must be two or more sizes within the {examples} examples of the data")
    if len(set(chosen)) < 2:
        raise ValueError(f"converge={chosen} must name at least two batch sizes; the law has two constants")
    trainer = Trainer(make_model, loss, data, rate, share)
    trainer.begin(seeds[0])
    position = dict.fromkeys(sizes, 0)

    def update(batch: int) -> None:
        trainer.state = trainer.advance(trainer.state, position[batch], position[batch] + 1, batch)
        position[batch] += 1

    seconds = typical(time_updates(update, sizes, rounds=rounds, synchronise=trainer.synchronise))
    counted = []
    for batch in chosen:
        seen = tuple(trainer.count(seed, batch, threshold, growth, limit) for seed in seeds)
        counted.append(Updates(batch, seen, float(limit)))
    try:
        return choose(seconds, counted)
    except FitError as error:
        raise FitError(f"step 3 with threshold={threshold} and limit={limit}: {error}") from error


class Trainer:
    """Plain SGD on flat parameters, a pure function of (state, batch number)."""

    def __init__(
        self, make_model: Callable[[int], nn.Module], loss: Callable[..., Any], data: Any, rate: float, share: float
    ):
        import torch

        self.make_model, self.loss, (self.inputs, self.targets), self.rate = make_model, loss, data, rate
        if not 0 < share <= 1:
            raise ValueError(f"share={share} of the data to test on must lie in (0, 1]")
        count = max(1, round(share * len(self.inputs)))
        rows = torch.randperm(len(self.inputs), generator=torch.Generator().manual_seed(0))[:count]
        rows = rows.to(self.inputs.device)
        self.sample = self.inputs[rows], self.targets[rows]
        self.state: Any = None

    def begin(self, seed: int) -> None:
        """Take up a seed: its initial weights and its order of batches."""
        from suite.training.flat import FlatModule

        self.flat = FlatModule(self.make_model(seed))
        if self.flat.batch_norm or self.flat.dropout:
            raise ValueError("the model has batch norm or dropout, which the replay of updates cannot repeat")
        self.seed, self.state = seed, self.flat.point()
        self.orders: dict[int, Any] = {}

    def synchronise(self) -> None:
        import torch

        if self.inputs.is_cuda:
            torch.cuda.synchronize(self.inputs.device)

    def advance(self, state: Tensor, first: int, last: int, batch: int) -> Tensor:
        """State [d] after updates ``first`` .. ``last - 1`` of this batch size."""
        import torch

        from suite.data.order import Shuffled

        order = self.orders.setdefault(batch, Shuffled(len(self.inputs), batch, self.seed))
        for number in range(first, last):
            rows = order.indices(torch.tensor([number]))[0].to(self.inputs.device)
            self.flat.load(state)
            self.flat.grad.zero_()
            self.loss(self.flat.module(self.inputs[rows]), self.targets[rows]).backward()
            state = state - self.rate * self.flat.grad
        return state

    def count(self, seed: int, batch: int, threshold: float, growth: float, limit: int) -> float | None:
        """Updates to the threshold, None where censored."""
        self.begin(seed)
        monitor = Monitor("training", self._read, (threshold,))
        search = Search([monitor], self.state, growth=growth, limit=limit)
        drive(search, lambda state, first, last: self.advance(state, first, last, batch))
        found = monitor.crossed.get(threshold)
        return None if found is None else float(found)

    def _read(self, state: Tensor, threshold: float) -> Reading:
        import torch

        self.flat.load(state)
        inputs, targets = self.sample

        def chunks() -> Any:
            with torch.no_grad():
                for x, y in zip(inputs.split(TEST_CHUNK), targets.split(TEST_CHUNK), strict=True):
                    yield self.loss(self.flat.module(x), y).item() * len(y), len(y)

        reading = read_loss(chunks(), len(targets), threshold)
        if math.isinf(reading.loss):
            raise ValueError(f"the loss became infinite at rate={self.rate}; choose a smaller rate")
        return reading
