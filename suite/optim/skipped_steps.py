"""Steps that a process skips or takes without a batch, as all must do alike: overflows, loaders of unequal length."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.optim.vector import Loss, Vector


class Scaled(torch.optim.Optimizer):
    """What an :class:`~suite.optim.base.Algorithm` does with scaled gradients."""

    group: Group
    vector: Vector

    _step_supports_amp_scaling = True

    def _overflowed(self) -> bool:
        """Whether a gradient of any process overflowed, so that all skip the step; otherwise undo the scaling."""
        found = getattr(self, "found_inf", None)
        if found is not None and self.group.size > 1:
            found = Processes(self.group).sum(found.double().reshape(1, 1).to(self.vector.x.device))
        return self._unscaled(found)

    def _unscaled(self, found: Tensor | None) -> bool:
        """Whether to skip the step as ``found`` overflows; otherwise undo the scaling."""
        if found is None:
            return False
        if found.item():
            return True
        if (scale := getattr(self, "grad_scale", None)) is not None:
            grads = [p.grad for p in self.vector.parameters if p.grad is not None]
            torch._foreach_mul_(grads, float(1 / scale.double()))
        return False


class Uneven(torch.optim.Optimizer):
    """How an :class:`~suite.optim.base.Algorithm` lets a process go on exchanging that has no batches any more."""

    group: Group
    vector: Vector
    _uneven = False  # within ``join``

    def _take(self, loss: Loss) -> None:
        """Take the gradients in the parameters."""
        raise NotImplementedError

    @contextlib.contextmanager
    def join(self) -> Iterator[None]:
        """Let processes have unequally many batches: each goes on exchanging until the last has stepped for good.

            with opt.join():
                for inputs, targets in loader:
                    ...
                    opt.step()

        A process without a batch exchanges gradients of zeros, as in ``torch.nn.parallel.DistributedDataParallel``'s
        join; momentum, decay and averaging go on. Every process must enter it. Each step costs a sum of one number.

        Returns:
            A context; on leaving it a process exchanges until all have no batch any more.

        Raises:
            ValueError: a gradient leaves before the step, or counts for more than itself.
        """
        self._refuse_join()
        self._uneven = self.group.size > 1
        try:
            yield
            while self._uneven and self._somebody_trains(False):
                self.zero_grad()
                self._take(0.0)
        finally:
            self._uneven = False

    def _refuse_join(self) -> None:
        """Raise ValueError where a process without batches cannot go on exchanging."""

    def _somebody_trains(self, here: bool) -> bool:
        """Whether a process has a batch, by the word of all."""
        if getattr(self, "found_inf", None) is not None:
            raise ValueError("GradScaler cannot be used within join(); train in bfloat16, which needs no scaling")
        return bool(Processes(self.group).sum(self.vector.x.new_full((1, 1), float(here))).item())
