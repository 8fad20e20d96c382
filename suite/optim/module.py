"""What an optimiser needs of a module besides its parameters: buffers, a copy to test, reasons to refuse it."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from suite.communication.group import Group
from suite.optim.vector import Vector


def unwrapped(module: nn.Module) -> nn.Module:
    """The module behind ``torch.compile``.

    Raises ValueError for one wrapped to exchange gradients by itself, and for one without parameters; TypeError for
    what is no module.
    """
    inner = getattr(module, "_orig_mod", module)
    if not isinstance(inner, nn.Module):
        raise TypeError(f"this is no module: hand it the module, not its parameters ({type(inner).__name__})")
    wrappers = (nn.parallel.DistributedDataParallel, nn.DataParallel)
    if isinstance(inner, wrappers):
        raise ValueError(
            f"the module is wrapped in {type(inner).__name__}, which averages gradients by itself; here the "
            "optimiser exchanges what its algorithm exchanges, so hand it the module inside (module.module)"
        )
    if not any(True for _ in inner.parameters()):
        raise ValueError("the module has no parameters to train")
    return inner


def check_device(vector: Vector, group: Group) -> None:
    """Raise ValueError for a module that does not lie where this process exchanges."""
    if group.size > 1 and vector.x.device != group.device:
        raise ValueError(
            f"the module is on {vector.x.device}, and process {group.rank} exchanges over {group.backend} on "
            f"{group.device}; move it there with .to(suite.optim.device()) before it is handed over"
        )


def digest(module: nn.Module, vector: Vector) -> str:
    """A short name of what is trained: names, shapes, types and memory formats of parameters and buffers."""
    known: dict[Tensor, str] = {parameter: name for name, parameter in module.named_parameters()}
    lines = [f"{known.get(p)} {tuple(p.shape)} {p.stride()} {p.dtype}" for p in vector.parameters]
    lines += [f"{name} {tuple(b.shape)} {b.dtype}" for name, b in module.named_buffers()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


class Buffers:
    """The module's buffers (batch-norm statistics, counts), a set for each of the learners that take turns in it."""

    def __init__(self, module: nn.Module, learners: int):
        self.module, self.learners = module, learners
        self.own = [self._copies() for _ in range(learners if learners > 1 else 0)]

    def current(self) -> list[Tensor]:
        """Those the module holds now. Found anew each time: ``module.to`` may have replaced them."""
        return list(self.module.buffers())

    def _copies(self) -> list[Tensor]:
        return [buffer.clone() for buffer in self.current()]

    def keep(self, learner: int) -> None:
        """Remember what the module holds as this learner's."""
        if self.own:
            self.own[learner] = self._copies()

    @torch.no_grad()
    def load(self, learner: int) -> None:
        """Put a learner's into the module."""
        if self.own:
            for buffer, value in zip(self.current(), self.own[learner], strict=True):
                buffer.copy_(value)

    def sets(self) -> list[list[Tensor]]:
        """Every learner's."""
        return self.own or [self.current()]

    def total(self) -> Tensor:
        """The sum over learners [q] of all floating-point buffers, as float64."""
        rows = [
            torch.cat([b.reshape(-1).double() for b in held if b.is_floating_point()] or [torch.zeros(0)])
            for held in self.sets()
        ]
        return torch.stack(rows).sum(0)


class Tested:
    """A copy of the module in evaluation mode, made when first asked for and refreshed afterwards."""

    def __init__(self, module: nn.Module):
        self.module = module
        self._copy: nn.Module | None = None

    @torch.no_grad()
    def refreshed(self, trained: Sequence[Tensor], values: Sequence[Tensor], buffers: Tensor) -> nn.Module:
        """The copy with ``values`` in place of the ``trained`` parameters and floating-point ``buffers`` [q]."""
        if self._copy is None:
            self._copy = copy.deepcopy(self.module).eval()
            for parameter in self._copy.parameters():
                parameter.grad = None
        given = {id(parameter): value for parameter, value in zip(trained, values, strict=True)}
        for mine, theirs in zip(self._copy.parameters(), self.module.parameters(), strict=True):
            mine.copy_(given.get(id(theirs), theirs))
        start = 0
        for buffer, current in zip(self._copy.buffers(), self.module.buffers(), strict=True):
            if buffer.is_floating_point():
                buffer.copy_(buffers[start : start + buffer.numel()].view(buffer.shape))
                start += buffer.numel()
            else:
                buffer.copy_(current)
        return self._copy
