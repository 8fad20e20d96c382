"""The local solver of the optimisers: torch's SGD with each parameter group's own rate, momentum and decay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.sgd import sgd

from suite.optim.vector import Pieces, Vector
from suite.training.optimizers import ALL, Stepped, TorchSGD

SETTINGS = ("lr", "momentum", "weight_decay")  # of SGD's parameter groups
MOST_KEPT = 64  # rows whose parts are remembered: points and memory of each learner


class Grouped:
    """A ``contract.Optimizer`` on the vector of ``groups``, whose values are read at every step.

    ``fused`` steps by torch's fused kernel, which overwrites points and memory in one pass where the solver of the
    papers' figures, ``Torch``, makes six and leaves them as they are; it rounds a product and a sum once and so
    differs from it in the last places. The rate handed to ``step`` multiplies the groups' own.
    """

    def __init__(self, vector: Vector, groups: Sequence[Mapping[str, Any]], *, fused: bool):
        self.vector, self.groups, self.fused = vector, groups, fused
        self.divisor = 1  # of all rates
        self._kept: dict[int, list[Tensor]] = {}  # the parameters' parts of a vector, by its address

    def init(self, points: Tensor) -> Tensor:
        return torch.zeros_like(points)

    def step(self, memory: Tensor, points: Tensor, grads: Tensor | Pieces, lr: Tensor, part: slice = ALL) -> Stepped:
        """New points and memory [..., s], where ``part`` selects s of the d, of whole parameters with ``fused``.

        Only ``fused`` takes ``Pieces``, of all d.
        """
        if isinstance(grads, Pieces):
            all_x, all_v = self._parts(points), self._parts(memory)
            for members, group in zip(self.vector.members, self.groups, strict=True):
                self._overwrite(all_x[members], grads.grads[members], all_v[members], lr, group)
            return points, memory
        start, stop, _ = part.indices(self.vector.d)
        cuts = [
            (slice(max(start, own.start) - start, min(stop, own.stop) - start), members, group)
            for own, members, group in zip(self.vector.groups, self.vector.members, self.groups, strict=True)
            if own.start < own.stop and own.start < stop and own.stop > start
        ]
        if self.fused:
            for cut, members, group in cuts:
                sizes = [own.stop - own.start for own in self.vector.segments[members] if start <= own.start < stop]
                x, g, v = (pieces(vector, cut, sizes) for vector in (points, grads, memory))
                self._overwrite(x, g, v, lr, group)
            return points, memory
        stepped = [
            TorchSGD(group["momentum"], group["weight_decay"]).step(
                memory[..., cut], points[..., cut], grads[..., cut], lr * (group["lr"] / self.divisor)
            )
            for cut, _, group in cuts
        ]
        if len(stepped) == 1:
            return stepped[0]
        return torch.cat([x for x, _ in stepped], -1), torch.cat([v for _, v in stepped], -1)

    def step_learner(
        self, learner: int, memory: Tensor, points: Tensor, gradient: Tensor | Pieces, lr: Tensor
    ) -> None:
        """Step one row of points and memory [m, d] from its gradient [1, d], with ``fused``."""
        own = slice(learner, learner + 1)
        self.step(memory[own], points[own], gradient, lr)

    def lay_out(self, vector: Vector) -> None:
        """Step another vector from here on."""
        self.vector = vector
        self._kept.clear()

    def _parts(self, row: Tensor) -> list[Tensor]:
        """The parameters' parts of one vector, which is the same from step to step unless a state was loaded."""
        found = self._kept.get(row.data_ptr())
        if found is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            found = self._kept[row.data_ptr()] = self.vector.views(row)
        return found

    def rate(self, group: Mapping[str, Any], lr: Tensor) -> float:
        """Of a group, in a step at ``lr``."""
        return float(lr) * float(group["lr"] / self.divisor)

    def _overwrite(
        self,
        points: list[Tensor],
        grads: list[Tensor],
        memory: list[Tensor],
        lr: Tensor,
        group: Mapping[str, Any],
    ) -> None:
        """Step one group by torch's fused kernel, which overwrites ``points`` and ``memory``."""
        sgd(
            points,
            grads,
            [piece if group["momentum"] else None for piece in memory],
            fused=True,
            momentum=group["momentum"],
            weight_decay=group["weight_decay"],
            lr=self.rate(group, lr),
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )


def pieces(vector: Tensor, cut: slice, sizes: list[int]) -> list[Tensor]:
    """The parameters of a cut of rows [..., d], row by row.

    The kernel rounds the last few numbers of each tensor otherwise than the rest: so handed over, a step has the bits
    of torch.optim.SGD's, whether the gradients lie in a vector or where backward left them.
    """
    return [piece for row in vector[..., cut].reshape(-1, cut.stop - cut.start) for piece in row.split(sizes)]


def sgd_defaults(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of SGD's parameter groups, of which None was not given to the optimiser ``name``.

    Raises TypeError for a setting that SGD has not and without ``lr``, ValueError for one below zero.
    """
    given = {"momentum": 0.0, "weight_decay": 0.0}
    given |= {setting: value for setting, value in settings.items() if value is not None}
    if unknown := sorted(set(given) - set(SETTINGS)):
        raise TypeError(f"{name} has no setting {unknown[0]}; settings of another optimiser come with base=...")
    if "lr" not in given:
        raise TypeError(f"{name} needs lr, the learning rate")
    for setting, value in given.items():
        if not value >= 0.0:
            raise ValueError(f"{name}: {setting}={value} must be at least 0")
    return given


def comparable(group: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter group's settings for processes to compare: numbers as they are, everything else as text."""
    plain = {name: value for name, value in group.items() if name not in ("params", "param_names")}
    numbers = {name: float(value) for name, value in plain.items() if isinstance(value, int | float | Tensor)}
    return {name: numbers.get(name, repr(value)) for name, value in plain.items()}
