"""The local solver of the optimisers: torch's SGD with each parameter group's own rate, momentum and decay.

Any optimiser of torch's kind as the local solver of an algorithm.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import required

from suite.optim.vector import Pieces, Vector
from suite.training.optimizers import ALL, Stepped, TorchSGD, fused_sgd

ONE = torch.ones(())  # the rate that algorithms are told: the groups' own rates are the solver's
SETTINGS = ("lr", "momentum", "weight_decay")  # of SGD's parameter groups


class Grouped:
    """A ``contract.Optimizer`` on the vector of ``groups``, whose values are read at every step.

    ``fused`` steps by torch's fused kernel, which overwrites points and memory in one pass where the solver of the
    papers' figures, ``Torch``, makes six and leaves them as they are; it rounds a product and a sum once and so
    differs from it in the last places. The rate handed to ``step`` is one, as the groups have their own.
    """

    def __init__(self, vector: Vector, groups: Sequence[Mapping[str, Any]], *, fused: bool):
        self.vector, self.groups, self.fused = vector, groups, fused
        self.divisor = 1  # of all rates

    def init(self, points: Tensor) -> Tensor:
        return torch.zeros_like(points)

    def step(self, memory: Tensor, points: Tensor, grads: Tensor | Pieces, lr: Tensor, part: slice = ALL) -> Stepped:
        """New points and memory [..., s], where ``part`` selects s of the d, of whole parameters with ``fused``.

        Only ``fused`` takes ``Pieces``, of all d.
        """
        if isinstance(grads, Pieces):
            all_x, all_v = self.vector.same_views(points), self.vector.same_views(memory)
            for members, group in zip(self.vector.members, self.groups, strict=True):
                self._overwrite(all_x[members], grads.grads[members], all_v[members], group)
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
                self._overwrite(x, g, v, group)
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

    def step_learner(self, learner: int, memory: Tensor, points: Tensor, gradient: Tensor | Pieces) -> None:
        """Step one row of points and memory [m, d] from its gradient [1, d], with ``fused``."""
        own = slice(learner, learner + 1)
        self.step(memory[own], points[own], gradient, ONE)

    def lay_out(self, vector: Vector) -> None:
        """Step another vector from here on."""
        self.vector = vector
        vector.remembered.clear()

    def rate(self, group: Mapping[str, Any]) -> float:
        """Of a group."""
        return float(group["lr"] / self.divisor)

    def _overwrite(
        self, points: list[Tensor], grads: list[Tensor], memory: list[Tensor], group: Mapping[str, Any]
    ) -> None:
        """Step one group by torch's fused kernel, which overwrites ``points`` and ``memory``."""
        if points:
            fused_sgd(points, grads, memory, group["momentum"], group["weight_decay"], self.rate(group))


def pieces(vector: Tensor, cut: slice, sizes: list[int]) -> list[Tensor]:
    """The parameters of a cut of rows [..., d], row by row.

    The kernel rounds the last few numbers of each tensor otherwise than the rest: so handed over, a step has the bits
    of torch.optim.SGD's, whether the gradients lie in a vector or where backward left them.
    """
    return [piece for row in vector[..., cut].reshape(-1, cut.stop - cut.start) for piece in row.split(sizes)]


def parameters_of(module: nn.Module, params: Any) -> list[Any]:
    """The parameters or groups that were given, by default all of the module. Raises TypeError for a number."""
    if isinstance(params, int | float | str | Tensor):
        raise TypeError(f"params must be parameters or groups of them, not {params}; a learning rate is lr=...")
    return list(module.parameters() if params is None else params)


def settings_of(kind: type) -> list[str]:
    """The keyword arguments that an optimiser names, or the class nearest above it that names any."""
    for each in kind.__mro__:
        parameters = inspect.signature(each).parameters.values()
        if named := [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]:
            return named
    return []


def check_names(kind: type, names: Iterable[str]) -> None:
    """Raise TypeError for a setting that SGD has not, to the optimiser of this ``kind``."""
    if unknown := sorted(set(names) - set(SETTINGS)):
        known = settings_of(kind)
        cure = "; settings of another optimiser come with base=..." if "base" in known else ""
        raise TypeError(f"{kind.__name__} has no setting {unknown[0]}; it has {', '.join(known)}{cure}")


def sgd_defaults(kind: type, settings: Mapping[str, Any], params: Sequence[Any]) -> dict[str, Any]:
    """The defaults of SGD's parameter groups, of which None was not given to the optimiser of this ``kind``.

    Raises TypeError for a setting that SGD has not and without ``lr`` where one of ``params`` is no group with its
    own, ValueError for one below zero or no number.
    """
    name, given = kind.__name__, {"momentum": 0.0, "weight_decay": 0.0}
    given |= {setting: value for setting, value in settings.items() if value is not None}
    check_names(kind, given)
    own = all(isinstance(group, Mapping) and "lr" in group for group in params)
    if "lr" not in given and not own:
        raise TypeError(f"{name} needs lr, the learning rate")
    for setting, value in given.items():
        if not isinstance(value, Real | Tensor) or not value >= 0.0:
            raise ValueError(f"{name}: {setting}={value!r} must be a number, at least 0")
    return {"lr": required, **given}


def current(group: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter group's settings without its parameters; a schedule may write over a rate that is a tensor."""
    return {
        name: value.clone() if isinstance(value, Tensor) else value
        for name, value in group.items()
        if name not in ("params", "param_names")
    }


def comparable(group: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter group's settings for processes to compare: numbers as they are, everything else as text."""
    plain = current(group)
    numbers = {name: float(value) for name, value in plain.items() if isinstance(value, int | float | Tensor)}
    return {name: numbers.get(name, repr(value)) for name, value in plain.items()}


Base = torch.optim.Optimizer | Callable[..., torch.optim.Optimizer]  # an optimiser, or what makes one of parameters


def prototype(
    kind: type, base: Base, params: Iterable[Any], options: Mapping[str, Any], fused: bool | None
) -> torch.optim.Optimizer:
    """``base`` of an optimiser of this ``kind``: itself, or what it makes of ``params`` and ``options``.

    Raises ValueError for settings beside an optimiser that has its own, and for one whose step needs a closure;
    TypeError for what is no optimiser.
    """
    if fused is not None:
        raise ValueError(f"fused={fused} chooses between two forms of SGD; leave it out beside base")
    given = [name for name, value in options.items() if value is not None]
    if isinstance(base, torch.optim.Optimizer):
        if given:
            raise ValueError(
                f"the optimiser handed over as base has its own {given[0]}; leave it out, or hand its class"
            )
        made = base
    else:
        if not callable(base):
            raise TypeError(f"base must be, or make, a torch.optim.Optimizer, not {base!r}")
        try:
            made = base(params, **{name: options[name] for name in given})
        except TypeError as error:
            raise TypeError(f"{error}; {kind.__name__} itself has {', '.join(settings_of(kind))}") from None
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

    def step_learner(self, learner: int, memory: Tensor, points: Tensor, gradient: Tensor | Pieces) -> None:
        """Overwrite one row of points [m, d] from its gradient [1, d]."""
        self._bind(points)
        parts = gradient.grads if isinstance(gradient, Pieces) else self.vector.views(gradient[0])
        self._step_copy(learner, dict(enumerate(parts)))

    def _step_copy(self, row: int, grads: Mapping[int, Tensor]) -> None:
        """Step a copy from gradients by the number of the parameter."""
        optimiser, parameters = self.copies[row], self._parameters[row]
        for i, grad in grads.items():
            parameters[i].grad = grad
        for ours, theirs in zip(self.groups, optimiser.param_groups, strict=True):
            theirs.update({name: value for name, value in ours.items() if name not in ("params", "param_names")})
        optimiser.step()
        for i in grads:
            parameters[i].grad = None

    def lay_out(self, vector: Vector) -> None:
        """Step another vector from here on, which may have further groups at its end."""
        self.vector, self._at = vector, None
        for optimiser, parameters in zip(self.copies, self._parameters, strict=True):
            parameters += [nn.Parameter(view) for view in vector.views(vector.x)[len(parameters) :]]
            self._add_groups(optimiser, parameters)

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
        for group, members in zip(made.param_groups, self.vector.members, strict=False):
            group["params"] = views[members]
        for frozen in made.state.keys() - set(views):
            del made.state[frozen]
        if made.state:  # in the type of the vector
            made.load_state_dict(made.state_dict())
        self._add_groups(made, views)
        self.copies.append(made)
        self._parameters.append(views)

    def _add_groups(self, optimiser: torch.optim.Optimizer, parameters: list[nn.Parameter]) -> None:
        """Let a copy have the groups that were added after ``base`` was made."""
        for members in self.vector.members[len(optimiser.param_groups) :]:
            optimiser.add_param_group({"params": parameters[members]})

    def _bind(self, points: Tensor) -> None:
        """Let the copies' parameters be views of these points."""
        at = points.data_ptr(), self.vector.d
        if at == self._at:
            return
        for row, parameters in zip(points.view(-1, self.vector.d), self._parameters, strict=True):
            for parameter, view in zip(parameters, self.vector.views(row), strict=True):
                parameter.data = view
        self._at = at
