"""An update of plain SGD with one worker where the gradient goes straight into the step, in place.

The general way writes the gradient into a row [d], which the algorithm sums over workers and hands to the solver.
One worker of plain SGD has nothing to sum: its solver may step along autograd's own tensors, which saves a pass over
all parameters, and native code may step along a layer's gradient while it is in the cache. Both agree with the
general way to a few units in the last place a step. Who may have its state overwritten says
:mod:`suite.training.fused_step`.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from reference_impls.contract import Algorithm, Points, Turn
from reference_impls.inverse_law import SGD
from suite.training.flat import FlatModule
from suite.training.fused_step import InPlace
from suite.training.gradients.looped import Bound
from suite.training.gradients.native import Native
from suite.training.gradients.types import Gradients
from suite.training.optimizers import CaffeSGD

Updated = tuple[Any, Tensor, dict[str, Tensor]]  # state, buffers [1, q], what is worth a curve (0-d)


def one_worker(gradients: Gradients, algorithm: Algorithm[Any]) -> OneWorker | None:
    """The update of one worker in place, where algorithm, solver and path allow it."""
    optimizer = algorithm.optimizer
    if type(algorithm) is not SGD or algorithm.collective.workers > 1 or not isinstance(optimizer, InPlace):
        return None
    if not isinstance(gradients, Bound | Native) or gradients.flat.x.dtype != torch.float32:
        return None
    return Listed(gradients, optimizer) if isinstance(gradients, Bound) else Fused(gradients, optimizer)


class OneWorker:
    """What both have in common. A state is that of plain SGD: ``x`` [d] and the solver's ``memory`` [d]."""

    def __init__(self, gradients: Any, solver: InPlace):
        self.gradients, self.solver = gradients, solver
        self.flat: FlatModule = gradients.flat

    def __call__(
        self, turn: Turn, points: Points, state: Any, buffers: Tensor, examples: Tensor, lr: Tensor
    ) -> Updated:
        """The state itself, overwritten; its loss was the one before."""
        batch = self.gradients.problem.fetch(examples[0])
        loss, after = self.advance(state.x, state.memory, buffers, batch, lr.item())
        return state, after, {"loss": loss}

    def advance(
        self, x: Tensor, memory: Tensor, buffers: Tensor, batch: tuple[Tensor, ...], lr: float
    ) -> tuple[Tensor, Tensor]:
        """Loss (0-d) and buffers [1, q]; x [d] and memory [d] hold the new values afterwards."""
        raise NotImplementedError

    def scales(self) -> list[tuple[float, float]]:
        """What multiplies the learning rate and the decay of each parameter tensor."""
        rule = self.solver.optimizer
        starts = [part.start for part in self.flat.segments]
        one = torch.ones(self.flat.d)
        rates, decays = (one if scale is None else scale for scale in (rule.lr_scale, rule.decay_scale))
        return list(zip(rates[starts].tolist(), decays[starts].tolist(), strict=True))


class Listed(OneWorker):
    """Along autograd's tensors, by torch's fused kernel on the list of them."""

    gradients: Bound

    def __init__(self, gradients: Bound, solver: InPlace):
        super().__init__(gradients, solver)
        self._groups: dict[tuple[float, float], list[int]] = {}
        for place, pair in enumerate(self.scales()):
            self._groups.setdefault(pair, []).append(place)
        self._views: dict[int, list[Tensor]] = {}

    def advance(
        self, x: Tensor, memory: Tensor, buffers: Tensor, batch: tuple[Tensor, ...], lr: float
    ) -> tuple[Tensor, Tensor]:
        loss, grads = self.gradients.tensors(x, buffers[0], batch)
        points, velocity = self._parts(x), self._parts(memory)
        laid = [laid_as(part, grad) for part, grad in zip(points, grads, strict=True)]
        for (rate, decay), mine in self._groups.items():
            self.solver.advance(
                [points[i] for i in mine], [laid[i] for i in mine], [velocity[i] for i in mine], lr * rate, decay
            )
        return loss, self.flat.buffers[None].clone() if self.flat.q else buffers

    def _parts(self, vector: Tensor) -> list[Tensor]:
        """A vector's parameters as views; of the two vectors that a state keeps they are made once."""
        at = vector.data_ptr()
        if at not in self._views:
            if len(self._views) > 2:  # a state was loaded since
                self._views.clear()
            self._views[at] = self.flat.views(vector)
        return self._views[at]


def laid_as(part: Tensor, grad: Tensor | None) -> Tensor:
    """A gradient in the order of its parameter, as the fused kernel assumes it; zero for an unused parameter."""
    if grad is None:
        return torch.zeros_like(part)
    return grad if grad.stride() == part.stride() else torch.empty_like(part).copy_(grad)


class Fused(OneWorker):
    """Forward, backward and step by one call of native code, layer by layer."""

    gradients: Native

    def __init__(self, gradients: Native, solver: InPlace):
        super().__init__(gradients, solver)
        self._rules: dict[float, Any] = {}

    def advance(
        self, x: Tensor, memory: Tensor, buffers: Tensor, batch: tuple[Tensor, ...], lr: float
    ) -> tuple[Tensor, Tensor]:
        if lr not in self._rules:
            self._rules = {lr: self.rules(lr)}
        loss = self.gradients.step(x, memory, self._rules[lr], self.solver.optimizer.momentum, batch)
        return torch.scalar_tensor(loss, dtype=torch.float64), buffers

    def rules(self, lr: float) -> Any:
        """A C array of three numbers for each tensor: inner, outer, decay.

        velocity <- momentum velocity + inner (gradient + decay w);  w <- w - outer velocity
        """
        rule, found = self.solver.optimizer, list[float]()
        for rate, decay in self.scales():
            inner, outer = (lr * rate, 1.0) if isinstance(rule, CaffeSGD) else (1.0, lr * rate)
            found += [inner, outer, rule.decay * decay]
        return (ctypes.c_float * len(found))(*found)
