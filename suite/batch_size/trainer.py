"""The trainings behind the choice of a batch size: updates that a search may repeat, tests, times.

A search counts the updates that bring a loss below a threshold: the measuring rule of inverse_law.

The rule is the first update whose loss lies below the threshold, without patience and without interpolation
(Image Recognition Task, first paragraph). A test of the loss on thousands of examples costs as much as a
hundred updates, so a :class:`Search` tests on a geometric grid and, where a test finds the loss below a
threshold, goes back to the previous test and repeats the updates between them one by one: the trajectory is a
function of the batch number, so it is the same. What the grid can miss is a dip below the threshold between
two tests that both lie above it; ``growth=0`` tests every update and misses nothing.

Losses are not negative, so a partial sum over the examples that exceeds N times the threshold decides a test
exactly before all examples are seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

from suite.lazy import torch
from suite.training.loss_reading import LossReading, read_loss

State = Any


@dataclass
class Monitor:
    """A loss that is watched and the thresholds it has still to cross.

    ``read(state, threshold)`` measures the loss of a state, exact if it lies below the threshold.
    """

    name: str
    read: Callable[[State, float], LossReading]
    thresholds: tuple[float, ...]
    crossed: dict[float, int] = field(default_factory=dict)  # threshold -> first update below it

    def __post_init__(self) -> None:
        self.thresholds = tuple(sorted(set(self.thresholds), reverse=True))

    @property
    def pending(self) -> tuple[float, ...]:
        return tuple(t for t in self.thresholds if t not in self.crossed)

    def test(self, state: State) -> LossReading:
        """The loss of a state, decided against the highest threshold not crossed yet."""
        return self.read(state, self.pending[0])

    def record(self, update: int, reading: LossReading) -> None:
        """Note every threshold that a reading lies below as crossed at this update."""
        if not reading.cut:
            for threshold in self.pending:
                if reading.loss < threshold:
                    self.crossed[threshold] = update


class Test(NamedTuple):
    """A row of the record: which monitor, after how many updates, what it read."""

    monitor: str
    update: int
    reading: LossReading


class Search:
    """First crossings of one run, found by whoever drives its updates::

        while not search.done:
            update, state = search.position
            for t in range(update, search.next_update):
                state = step(state, t)
            search.see(state)

    A driver may advance several searches side by side: each only says where it stands and which state it wants
    to see next. Between tests the search holds nothing but its position, so that is also where to checkpoint.
    """

    def __init__(
        self,
        monitors: Sequence[Monitor],
        state: State,
        *,
        growth: float,
        limit: int,
        every: int = 1,
        update: int = 0,
    ):
        """``limit`` is the number of updates after which thresholds not crossed are *censored*.

        ``every`` above 1 is a coarse recording grid like the paper's on CIFAR, where crossings are multiples
        of it: nothing is replayed.
        """
        self.monitors, self.growth, self.every, self.limit = tuple(monitors), growth, every, limit
        self.tests: list[Test] = []
        self._anchor = (update, state)  # the last test on the grid, passed
        self._ahead: tuple[int, State] | None = None  # the grid's test that found a crossing, while replaying
        self._replayed: list[Monitor] = []  # monitors whose crossing is being looked for
        self.position = (update, state)  # updates done and the state after them, from which to continue

    @property
    def done(self) -> bool:
        """Whether every threshold is crossed or the limit is reached."""
        return not any(m.pending for m in self.monitors) or (self._ahead is None and self._anchor[0] >= self.limit)

    @property
    def at_rest(self) -> bool:
        """Whether the position is a test of the grid, with no replay under way."""
        return self._ahead is None

    @property
    def next_update(self) -> int:
        """After how many updates the search wants to see the state: a share ``growth`` more, ``every`` at least."""
        if self._ahead is not None:
            return self.position[0] + 1
        update = self._anchor[0]
        return min(update + max(self.every, math.floor(update * self.growth)), self.limit)

    def see(self, state: State) -> None:
        """Take the state after ``next_update`` updates."""
        update = self.next_update
        if self._ahead is None:
            self._on_grid(update, state)
        else:
            self._in_replay(update, state)

    def _on_grid(self, update: int, state: State) -> None:
        alone = self.every > 1 or update == self._anchor[0] + 1  # nothing between two tests to repeat
        crossing = []
        for monitor in self.monitors:
            if not monitor.pending:
                continue
            reading = monitor.test(state)
            self.tests.append(Test(monitor.name, update, reading))
            if not reading.cut and reading.loss < monitor.pending[0]:
                if alone:
                    monitor.record(update, reading)
                else:
                    crossing.append(monitor)
        if crossing:
            self._replayed, self._ahead = crossing, (update, state)
            self.position = self._anchor
        else:
            self._anchor = self.position = (update, state)

    def _in_replay(self, update: int, state: State) -> None:
        assert self._ahead is not None
        for monitor in self._replayed:
            if monitor.pending:
                reading = monitor.test(state)
                monitor.record(update, reading)
        self.position = (update, state)
        if update == self._ahead[0]:
            self._anchor = self.position = self._ahead
            self._ahead, self._replayed = None, []


TEST_CHUNK = 500  # examples of a test read at a time


def check_positive(name: str, value: float) -> None:
    """Raise ValueError for anything but a positive, finite number."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < value < math.inf:
        raise ValueError(f"{name}={value!r} must be a positive, finite number")


class Diverged(ValueError):
    """The loss of a run is no finite number any more."""


class Trainer:
    """Plain SGD on flat parameters, a pure function of (state, batch number).

    A state is the parameters [d] with the buffers [q]; dropout's masks follow from seed and batch number.
    """

    def __init__(
        self,
        make_model: Callable[[int], torch.nn.Module],
        loss: Callable[..., Any],
        data: Any,
        rate: float,
        share: float,
    ):
        self.make_model, self.loss, (self.inputs, self.targets), self.rate = make_model, loss, data, rate
        check_positive("rate", rate)
        check_positive("share", share)
        if share > 1:
            raise ValueError(f"share={share} of the data to test on must lie in (0, 1]")
        count = max(1, round(share * len(self.inputs)))
        rows = torch.randperm(len(self.inputs), generator=torch.Generator().manual_seed(0))[:count]
        rows = rows.to(self.inputs.device)
        self.sample = self.inputs[rows], self.targets[rows]
        self.state: Any = None
        self._parameters: list[Any] = []  # of the module made last

    def begin(self, seed: int) -> None:
        """Take up a seed: its initial weights and its order of batches.

        Raises ValueError for a module without parameters, or one handed over before, which would begin trained.
        """
        from suite.training.flat import FlatModule

        module = self.make_model(seed)
        parameters = list(module.parameters()) if isinstance(module, torch.nn.Module) else []
        if not parameters:
            raise ValueError(f"make_model must return a torch.nn.Module with parameters, not {type(module).__name__}")
        if any(own is other for own in parameters for other in self._parameters):
            raise ValueError(
                "make_model returned the same module, or a part of it, twice; make a new one at every call"
            )
        self._parameters = parameters
        self.flat = FlatModule(module)
        self.flat.module.train()
        self.seed, self.state = seed, (self.flat.point(), self.flat.buffers.clone())
        self.orders: dict[int, Any] = {}

    def synchronise(self) -> None:
        if self.inputs.is_cuda:
            torch.cuda.synchronize(self.inputs.device)

    def memory_of_update(self, batch: int) -> int:
        """Bytes at most in use on the GPU during an update; 0 on a CPU, which is not asked. The state stays."""
        if not self.inputs.is_cuda:
            self.advance(self.state, 0, 1, batch)
            return 0
        torch.cuda.reset_peak_memory_stats(self.inputs.device)
        self.advance(self.state, 0, 1, batch)
        return torch.cuda.max_memory_allocated(self.inputs.device)

    def advance(self, state: Any, first: int, last: int, batch: int) -> Any:
        """The state after updates ``first`` .. ``last - 1`` of this batch size."""
        from suite.data.order import Shuffled
        from suite.spec import seed
        from suite.training.gradients.paths import seed_masks

        order = self.orders.setdefault(batch, Shuffled(len(self.inputs), batch, self.seed))
        x, buffers = state
        for number in range(first, last):
            rows = order.indices(torch.tensor([number]))[0].to(self.inputs.device)
            self.flat.load(x, buffers)
            self.flat.grad.zero_()
            if self.flat.dropout:
                seed_masks(seed(self.seed, "masks", batch, number), self.inputs.device)
            self.loss(self.flat.module(self.inputs[rows]), self.targets[rows]).backward()
            x = x - self.rate * self.flat.grad
            buffers = self.flat.buffers.clone() if self.flat.q else buffers
        return x, buffers

    def count(
        self,
        seed: int,
        batch: int,
        threshold: float,
        growth: float,
        limit: int,
        watch: Callable[[int], Any] = lambda updates: None,
    ) -> float | None:
        """Updates to the threshold, None where censored. ``watch`` is told the updates so far, and may raise.

        Raises Diverged for a loss that became infinite or NaN.
        """
        self.begin(seed)
        monitor = Monitor("training", self._read, (threshold,))
        search = Search([monitor], self.state, growth=growth, limit=limit)
        while not search.done:
            update, state = search.position
            watch(update)
            last = search.next_update
            try:
                search.see(self.advance(state, update, last, batch))
            except Diverged as error:
                raise Diverged(f"{error} within {last} updates of seed {seed}") from None
        found = monitor.crossed.get(threshold)
        return None if found is None else float(found)

    def _read(self, state: Any, threshold: float) -> LossReading:
        inputs, targets = self.sample
        with self.flat.evaluating():
            self.flat.load(*state)
            chunks = zip(inputs.split(TEST_CHUNK), targets.split(TEST_CHUNK), strict=True)
            sums = ((self._loss(x, y) * len(y), len(y)) for x, y in chunks)
            reading = read_loss(sums, len(targets), threshold)
        if math.isinf(reading.loss):
            raise Diverged(f"the loss became infinite or NaN at rate={self.rate}")
        return reading

    def _loss(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        loss = self.loss(self.flat.module(inputs), targets)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            got = f"a tensor of shape {list(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise ValueError(f"loss must return the mean over the examples as a tensor of one number, not {got}")
        return float(loss)

    def begins(self, threshold: float) -> None:
        """Raise ValueError where the loss before the first update is below the threshold, or no number."""
        try:
            loss = self._read(self.state, threshold).loss
        except Diverged:
            raise ValueError(f"the loss of the model that seed {self.seed} makes is no finite number") from None
        if loss < threshold:
            raise ValueError(
                f"threshold={threshold} lies above {loss:.4g}, the loss of the model that seed {self.seed} makes "
                "before its first update; choose one that training has to reach"
            )
