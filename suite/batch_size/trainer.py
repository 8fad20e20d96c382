"""The trainings behind the choice of a batch size: updates that a search may repeat, tests, times."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from suite.batch_size.threshold import Monitor, Search
from suite.training.loss_reading import LossReading, read_loss

if TYPE_CHECKING:
    from torch import nn

TEST_CHUNK = 500  # examples of a test read at a time


class Diverged(ValueError):
    """The loss of a run is no finite number any more."""


class Trainer:
    """Plain SGD on flat parameters, a pure function of (state, batch number).

    A state is the parameters [d] with the buffers [q]; dropout's masks follow from seed and batch number.
    """

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
        self._parameters: list[Any] = []  # of the module made last

    def begin(self, seed: int) -> None:
        """Take up a seed: its initial weights and its order of batches.

        Raises ValueError for a module that has been handed over before, which would begin trained.
        """
        from suite.training.flat import FlatModule

        module = self.make_model(seed)
        parameters = list(module.parameters())
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
        import torch

        if self.inputs.is_cuda:
            torch.cuda.synchronize(self.inputs.device)

    def memory_of_update(self, batch: int) -> int:
        """Bytes at most in use on the GPU during an update; 0 on a CPU, which is not asked. The state stays."""
        import torch

        if not self.inputs.is_cuda:
            self.advance(self.state, 0, 1, batch)
            return 0
        torch.cuda.reset_peak_memory_stats(self.inputs.device)
        self.advance(self.state, 0, 1, batch)
        return torch.cuda.max_memory_allocated(self.inputs.device)

    def advance(self, state: Any, first: int, last: int, batch: int) -> Any:
        """The state after updates ``first`` .. ``last - 1`` of this batch size."""
        import torch

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
        import torch

        self.flat.load(*state)
        inputs, targets = self.sample
        self.flat.module.eval()
        missing = False  # a loss was NaN, which ``read_loss`` takes for infinite

        def chunks() -> Any:
            nonlocal missing
            with torch.no_grad():
                for x, y in zip(inputs.split(TEST_CHUNK), targets.split(TEST_CHUNK), strict=True):
                    loss = self.loss(self.flat.module(x), y).item()
                    missing = missing or math.isnan(loss)
                    yield loss * len(y), len(y)

        try:
            reading = read_loss(chunks(), len(targets), threshold)
        finally:
            self.flat.module.train()
        if math.isinf(reading.loss):
            raise Diverged(f"the loss became {'NaN' if missing else 'infinite'} at rate={self.rate}")
        return reading

    def begins(self, threshold: float) -> float:
        """The loss before the first update. Raises ValueError where that is below the threshold, or no number."""
        try:
            loss = self._read(self.state, threshold).loss
        except Diverged:
            raise ValueError(f"the loss of the model that seed {self.seed} makes is no finite number") from None
        if loss < threshold:
            raise ValueError(
                f"threshold={threshold} lies above {loss:.4g}, the loss of the model that seed {self.seed} makes "
                "before its first update; choose one that training has to reach"
            )
        return loss
