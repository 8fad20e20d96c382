"""What an optimiser needs of a module besides its parameters: buffers, a copy to test, reasons to refuse it."""

from __future__ import annotations

import copy
import hashlib
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from suite.communication.group import Group
from suite.optim.vector import Vector

WRAPPERS = ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel")  # by name: imports take seconds


def unwrapped(module: nn.Module) -> nn.Module:
    """The module behind ``torch.compile``.

    Raises ValueError for one that is, or holds one that is, wrapped to exchange gradients by itself, and for one
    without parameters; TypeError for what is no module.
    """
    inner = getattr(module, "_orig_mod", module)
    if not isinstance(inner, nn.Module):
        raise TypeError(f"this is no module: hand it the module, not its parameters ({type(inner).__name__})")
    for name, part in inner.named_modules(prefix="module"):
        if type(part).__name__ in WRAPPERS:
            raise ValueError(
                f"{name} is wrapped in {type(part).__name__}, which averages gradients by itself; here the optimiser "
                f"exchanges what its algorithm exchanges, so put the module inside in its place ({name}.module)"
            )
    if not any(True for _ in inner.parameters()):
        raise ValueError("the module has no parameters to train")
    return inner


def check_device(vector: Vector, group: Group) -> None:
    """Raise ValueError for a module without numbers, or that does not lie where this process exchanges."""
    if vector.x.is_meta:
        raise ValueError(
            "the module is on meta, where parameters have no numbers; give it memory with .to_empty(device=...) and "
            "initial weights before it is handed over"
        )
    if group.size > 1 and vector.x.device != group.device:
        raise ValueError(
            f"the module is on {vector.x.device}, and process {group.rank} exchanges over {group.backend} on "
            f"{group.device}; move it there with .to(suite.optim.device()) before it is handed over"
        )


def digest(module: nn.Module, vector: Vector) -> str:
    """A short name of what is trained: names, shapes, types, memory formats; of buffers the persistent ones."""
    known: dict[Tensor, str] = {parameter: name for name, parameter in module.named_parameters()}
    lines = [f"{known.get(p)} {tuple(p.shape)} {p.stride()} {p.dtype}" for p in vector.parameters]
    lines += [f"{name} {tuple(b.shape)} {b.dtype}" for name, b in persistent(module).items()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def persistent(module: nn.Module) -> dict[str, Tensor]:
    """Buffers that belong to the module's state; others (caches, masks) it makes anew, in sizes of the day."""
    derived = {
        f"{path}.{name}" if path else name
        for path, part in module.named_modules()
        for name in part._non_persistent_buffers_set
    }
    return {name: buffer for name, buffer in module.named_buffers() if name not in derived}


class Membership:
    """Whether trained parameters still are the module's, asked at every step and so by a look into known places."""

    def __init__(self, module: nn.Module, parameters: Sequence[Tensor]):
        self.module, self.parameters = module, parameters
        self._names = {id(parameter): name for name, parameter in module.named_parameters()}
        self._remember()

    def _remember(self) -> None:
        """The module's parts by name, their children, and where parameters stand: (dictionary, name, parameter)."""
        self.parts = dict(self.module.named_modules())
        self._children = [(part._modules, dict(part._modules)) for part in self.parts.values()]
        trained = set(map(id, self.parameters))
        self._places = [
            (part._parameters, name, parameter)
            for part in self.parts.values()
            for name, parameter in part._parameters.items()
            if id(parameter) in trained
        ]

    def check(self) -> None:
        """Raise ValueError for a parameter that has left the module."""
        unchanged = all(now == before for now, before in self._children)
        if unchanged and all(place.get(name) is held for place, name, held in self._places):
            return
        present = set(map(id, self.module.parameters()))
        for parameter in self.parameters:
            if id(parameter) not in present:
                raise ValueError(
                    f"parameter {self._names[id(parameter)]} is not in the module any more (tied or replaced after "
                    "the optimiser was made?); make a new optimiser of the module as it is now"
                )
        self._remember()


class Reminder:
    """Warns once, when the module's ``state_dict`` is asked for, that it is one learner's and not the model to keep.

    It is a hook of the module that ends with the optimiser, and is silent in copies of the module.
    """

    def __init__(self, module: nn.Module, optimiser: object):
        self._optimiser: weakref.ref[object] | None = weakref.ref(optimiser)
        hook = module.register_state_dict_pre_hook(self)
        weakref.finalize(optimiser, hook.remove)

    def __getstate__(self) -> dict[str, Any]:
        return {"_optimiser": None}

    def __call__(self, module: nn.Module, prefix: str, keep_vars: bool) -> None:
        optimiser = None if self._optimiser is None else self._optimiser()
        if optimiser is not None:
            self._optimiser = None
            warnings.warn(
                f"model.state_dict() has the weights of one learner of {type(optimiser).__name__}; the model to save "
                "is opt.average().state_dict(), and opt.save(folder) keeps a training to go on with",
                stacklevel=3,
            )


class Buffers:
    """The module's buffers (batch-norm statistics, counts), a set for each of the learners that take turns in it.

    A buffer that has changed its shape since a learner's was kept is the module's own, for every learner.
    """

    _holders: ClassVar[weakref.WeakKeyDictionary[nn.Module, object]] = weakref.WeakKeyDictionary()

    def __init__(self, membership: Membership, learners: int):
        self.membership, self.learners = membership, learners
        self._mark = object()  # of the module while it holds a learner's from here
        self.module = membership.module
        self.own = [self._copies() for _ in range(learners if learners > 1 else 0)]

    def current(self) -> dict[str, Tensor]:
        """Those the module holds now. Found anew each time: ``module.to`` may have replaced them."""
        return {
            f"{path}.{name}" if path else name: buffer
            for path, part in self.membership.parts.items()
            for name, buffer in part._buffers.items()
            if buffer is not None
        }

    def _copies(self) -> dict[str, Tensor]:
        return {name: buffer.clone() for name, buffer in self.current().items()}

    @torch.no_grad()
    def keep(self, learner: int) -> None:
        """Remember what the module holds as this learner's."""
        if not self.own:
            return
        current, own = self.current(), self.own[learner]
        if _shapes(current) == _shapes(own):
            _copy(current, own)
        else:
            self.own[learner] = self._copies()

    def load(self, learner: int) -> None:
        """Put a learner's into the module."""
        if self.own:
            self.put(self.own[learner])
            self._holders[self.module] = self._mark

    def check(self) -> None:
        """Raise ValueError where another optimiser's learners have put theirs into the module."""
        if self.own and self.own[0] and self._holders.get(self.module) is not self._mark:
            raise ValueError(
                "another optimiser of several learners has put their buffers (batch-norm statistics) here since; "
                "train all parameters by one optimiser with groups, or call take_up() of the one that goes on alone"
            )

    @torch.no_grad()
    def put(self, held: Mapping[str, Tensor]) -> None:
        """Put buffers into the module, where it has them in that shape."""
        current = self.current()
        fitting = {name: own for name, own in held.items() if name in current and current[name].shape == own.shape}
        _copy(fitting, {name: current[name] for name in fitting})

    def set_learners(self, learners: int) -> None:
        """Let the last sets go, or others join that are the mean of those there are; counts are the first one's."""
        sets = self.own or [self._copies()]
        fitting = {name: [_fitting(held.get(name), b) for held in sets] for name, b in self.current().items()}
        mean = {name: torch.stack(b).mean(0) if b[0].is_floating_point() else b[0] for name, b in fitting.items()}
        sets += [{name: value.clone() for name, value in mean.items()} for _ in range(learners - len(sets))]
        self.put(sets[0])
        self.learners, self.own = learners, sets[:learners] if learners > 1 else []

    def sets(self) -> list[dict[str, Tensor]]:
        """Every learner's."""
        return self.own or [self.current()]

    def total(self) -> Tensor:
        """The sum over learners [q] of all persistent floating-point buffers, as float64."""
        averaged = [(name, b) for name, b in persistent(self.module).items() if b.is_floating_point()]
        rows = [
            torch.cat([_fitting(held.get(name), b).reshape(-1).double() for name, b in averaged] or [torch.zeros(0)])
            for held in self.sets()
        ]
        return torch.stack(rows).sum(0)


def _shapes(buffers: Mapping[str, Tensor]) -> list[tuple[str, torch.Size, torch.dtype]]:
    return [(name, buffer.shape, buffer.dtype) for name, buffer in buffers.items()]


def _copy(values: Mapping[str, Tensor], into: Mapping[str, Tensor]) -> None:
    """Overwrite buffers of the same names."""
    if values:
        torch._foreach_copy_(list(into.values()), list(values.values()))


def _fitting(held: Tensor | None, current: Tensor) -> Tensor:
    return current if held is None or held.shape != current.shape else held


def copied(module: nn.Module, given: Mapping[int, Tensor]) -> nn.Module:
    """A copy in evaluation mode, which has the tensors ``given`` in place of those of these ids.

    Raises ValueError for a module that has none.
    """
    # Results of computations that a part keeps, such as its last activation, do not belong to the copy's graph.
    kept = [value for part in module.modules() for value in vars(part).values() if isinstance(value, Tensor)]
    results = {id(value): value.detach().clone() for value in kept if value.grad_fn is not None}
    try:
        return copy.deepcopy(module, {**results, **given}).eval()
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"the module cannot be copied by copy.deepcopy, and average() returns a copy ({reason}); keep in it no "
            "lists of results of computations, and nothing that cannot be copied"
        ) from error


@torch.no_grad()
def tested(module: nn.Module, trained: Sequence[Tensor], values: Sequence[Tensor], buffers: Tensor) -> nn.Module:
    """A copy in evaluation mode with ``values`` in place of the ``trained`` parameters, and means of buffers.

    ``buffers`` [q] are the means of what ``Buffers.total`` adds; all else is the module's.
    """
    averaged = [b for b in persistent(module).values() if b.is_floating_point()]
    means = buffers.split([b.numel() for b in averaged])
    with torch.inference_mode(False):  # what is made in it could not be trained outside
        given = {
            id(old): torch.empty_like(old).copy_(new.view(old.shape))
            for old, new in zip([*trained, *averaged], [*values, *means], strict=True)
        }
        for parameter in trained:
            given[id(parameter)] = nn.Parameter(given[id(parameter)], parameter.requires_grad)
        return copied(module, given)
