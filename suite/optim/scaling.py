"""Mixed precision: ``torch.amp.GradScaler`` hands over its scale and what overflowed."""

from __future__ import annotations

import torch
from torch import Tensor

from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.optim.vector import Vector


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
