"""Any optimiser of torch's kind as the local solver of an algorithm."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from suite.optim.vector import Pieces, Vector
from suite.training.optimizers import ALL, Stepped

Base = torch.optim.Optimizer | Callable[..., torch.optim.Optimizer]  # an optimiser, or what makes one of parameters


def prototype(base: Base, params: Iterable[Any], options: Mapping[str, Any]) -> torch.optim.Optimizer:
    """``base`` itself, or what it makes of ``params`` and ``options``.

    Raises ValueError for settings beside an optimiser that has its own, and for one whose step needs a closure;
    TypeError for what is no optimiser.
    """
    given = [name for name, value in options.items() if value is not None]
    if isinstance(base, torch.optim.Optimizer):
        if given:
            raise ValueError(
                f"the optimiser handed over as base has its own {given[0]}; leave it out, or hand its class"
            )
        made = base
    else:
        made = base(params, **{name: options[name] for name in given})
    if not isinstance(made, torch.optim.Optimizer):
        raise TypeError(f"base must be, or make, a torch.optim.Optimizer, not a {type(made).__name__}")
    closure = inspect.signature(type(made).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ValueError(f"{type(made).__name__} asks for more gradients within a step; take one that steps with one")
    return made


class Wrapped:
    """A ``contract.Optimizer`` that steps by copies of ``base``, one for each set of weights, and overwrites them.

    The copies keep what the optimiser remembers, so the algorithm's own memory [..., 0, d] is empty. Settings of
    ``groups`` are handed to the copies at every step, as schedulers change them.
    """

    fused = True  # points are overwritten

    def __init__(self, vector: Vector, groups: Sequence[Mapping[str, Any]], base: torch.optim.Optimizer):
        self.vector, self.groups, self.base = vector, groups, base
        self.copies: list[torch.optim.Optimizer] = []
        self._parameters: list[list[nn.Parameter]] = []  # of each copy, in the vector's order
        self._at: tuple[int, int] | None = None  # where the points lie that these are views of, and how many

    def init(self, points: Tensor) -> Tensor:
        if not self.copies:
            for row in points.view(-1, self.vector.d):
                self._add_copy(row)
        return points.new_zeros(*points.shape[:-1], 0, self.vector.d)

    def step(self, memory: Tensor, points: Tensor, grads: Tensor | Pieces, lr: Tensor, part: slice = ALL) -> Stepped:
        """Overwrite points [..., s], where ``part`` selects s of the d, of whole parameters. ``lr`` must be one."""
        start, stop, _ = part.indices(self.vector.d)
        whole = points if start == 0 else points.as_strided((self.vector.d,), (1,), points.storage_offset() - start)
        self._bind(whole)
        inside = [i for i, own in enumerate(self.vector.segments) if start <= own.start and own.stop <= stop]
        for row in range(len(self.copies)):
            if isinstance(grads, Pieces):
                self._step_copy(row, dict(zip(inside, grads.grads, strict=True)))
            else:
                own = grads.view(-1, stop - start)[row]
                self._step_copy(row, {i: self.vector.part(i, own, start) for i in inside})
        return points, memory

    def step_learner(
        self, learner: int, memory: Tensor, points: Tensor, gradient: Tensor | Pieces, lr: Tensor
    ) -> None:
        """Overwrite one row of points [m, d] from its gradient [1, d]. ``lr`` must be one."""
        self._bind(points)
        parts = gradient.grads if isinstance(gradient, Pieces) else self.vector.views(gradient[0])
        self._step_copy(learner, dict(enumerate(parts)))

    def _step_copy(self, row: int, grads: Mapping[int, Tensor]) -> None:
        """Step a copy from gradients by the number of the parameter."""
        optimiser, parameters = self.copies[row], self._parameters[row]
        for i, grad in grads.items():
            parameters[i].grad = grad
        self._hand_settings(optimiser)
        optimiser.step()
        for i in grads:
            parameters[i].grad = None

    def lay_out(self, vector: Vector) -> None:
        """Step another vector from here on, which may have further parameters at its end."""
        self.vector, self._at = vector, None

    def set_learners(self, learners: int) -> None:
        """Let the last copies go, or others join that remember nothing."""
        del self.copies[learners:], self._parameters[learners:]
        while len(self.copies) < learners:
            self._add_copy(self.vector.x)
            self.copies[-1].state.clear()

    def state(self) -> list[dict[str, Any]]:
        """What each copy remembers, by the number of the parameter."""
        return [copy.deepcopy(optimiser.state_dict()["state"]) for optimiser in self.copies]

    def load(self, states: Sequence[Mapping[Any, Any]]) -> None:
        """Go on from what ``state`` returned."""
        for optimiser, held in zip(self.copies, states, strict=True):
            numbered = {int(number): values for number, values in held.items()}  # JSON has only text as keys
            optimiser.load_state_dict({**optimiser.state_dict(), "state": numbered})

    def forget(self) -> None:
        """Begin anew, as at the first step."""
        for optimiser in self.copies:
            optimiser.state.clear()

    def _add_copy(self, row: Tensor) -> None:
        views = [nn.Parameter(view) for view in self.vector.views(row)]
        own = dict(zip(map(id, self.vector.parameters), views, strict=True))
        all_of_base = [p for group in self.base.param_groups for p in group["params"]]
        made = copy.deepcopy(self.base, {id(p): own.get(id(p), p) for p in all_of_base})
        for group, members in zip(made.param_groups, self.vector.members, strict=True):
            group["params"] = views[members]
        if made.state:  # in the type of the vector
            made.load_state_dict(made.state_dict())
        self.copies.append(made)
        self._parameters.append(views)

    def _bind(self, points: Tensor) -> None:
        """Let the copies' parameters be views of these points."""
        at = points.data_ptr(), self.vector.d
        if at == self._at:
            return
        for row, optimiser, parameters in zip(
            points.view(-1, self.vector.d), self.copies, self._parameters, strict=True
        ):
            views = self.vector.views(row)
            for parameter, view in zip(parameters, views, strict=False):
                parameter.data = view
            for members in self.vector.members[len(optimiser.param_groups) :]:
                added = [nn.Parameter(view) for view in views[members]]
                optimiser.add_param_group({"params": added})
                parameters += added
        self._at = at

    def _hand_settings(self, optimiser: torch.optim.Optimizer) -> None:
        for ours, theirs in zip(self.groups, optimiser.param_groups, strict=True):
            theirs.update({name: value for name, value in ours.items() if name not in ("params", "param_names")})
