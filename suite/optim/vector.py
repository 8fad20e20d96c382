"""The trained parameters of a module as one vector, group after group: what the algorithms see.

Parameters of the vector's own type become views of it, so a new point is there as soon as it is written. Narrower
ones (bfloat16 beside float32) are rounded from it, and their small updates add up in the vector: full-precision
master weights. Those that would start where kernels of a GPU cannot read them are copied from it as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from reference_impls.contract import Sent, Turn
from suite.training.flat import Layout, consecutive, misaligned

Loss: TypeAlias = Tensor | float  # of a batch, 0-d
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def _strides(parameter: Tensor) -> tuple[int, ...]:
    """The parameter's own order of coordinates where it fills its memory (channels-last too), else row by row."""
    kept = FORMATS.get(parameter.dim())
    if kept is not None and parameter.is_contiguous(memory_format=kept):
        return parameter.stride()
    return torch.empty(parameter.shape, device="meta").stride()


def refuse_sparse(grad: Tensor) -> None:
    """Raise ValueError for a sparse gradient."""
    if grad.is_sparse:
        raise ValueError(
            f"a parameter of shape {tuple(grad.shape)} has a sparse gradient; make its embedding with sparse=False, "
            "as every algorithm adds up whole vectors"
        )


def check_parameters(parameters: Sequence[Tensor]) -> None:
    """Raise ValueError for parameters that are none, sharded, no floating-point numbers, or on several devices."""
    if not parameters:
        raise ValueError("every parameter group is empty; give one with parameters to train")
    device = parameters[0].device
    for parameter in parameters:
        if hasattr(parameter, "device_mesh"):  # a DTensor
            raise ValueError(
                f"a parameter of shape {tuple(parameter.shape)} is sharded over processes (fully_shard), and "
                "every learner needs all of its weights; leave the module whole"
            )
        if not parameter.is_floating_point() or parameter.device != device:
            raise ValueError(
                f"a parameter of shape {tuple(parameter.shape)} is {parameter.dtype} on {parameter.device}; all "
                f"must be floating-point numbers on one device, here {device}"
            )


class Vector(Layout):
    """``x`` [d] holds the parameters of all ``groups`` in their order; d grows when a group is added.

    Raises ValueError for parameters that are not floating-point, or do not lie on one device.
    """

    def __init__(self, groups: Sequence[Sequence[Tensor]]):
        self.parameters = [parameter for group in groups for parameter in group]
        check_parameters(self.parameters)
        self.dtype = reduce(torch.promote_types, (parameter.dtype for parameter in self.parameters))
        super().__init__([p.shape for p in self.parameters], [_strides(p) for p in self.parameters])
        self.groups = consecutive(sum(parameter.numel() for parameter in group) for group in groups)
        self.members = consecutive(map(len, groups))  # places of each group's parameters
        self.x = torch.empty(self.d, dtype=self.dtype, device=self.parameters[0].device)
        self._bound: list[tuple[Tensor, Tensor]] = []  # parameters that are views of x, and these
        self._rounded: list[tuple[Tensor, Tensor]] = []  # those with memory of their own, and the views they follow
        with torch.no_grad():
            for parameter, view in zip(self.parameters, self.views(self.x), strict=True):
                view.copy_(parameter)
                if parameter.dtype == self.dtype and not (view.device.type == "cuda" and misaligned(view)):
                    parameter.data = view
                    self._bound.append((parameter, view))
                else:
                    self._rounded.append((parameter, view))
        self._views_of_x = [parameter for parameter, _ in self._bound]  # each step compares where they lie
        self._addresses = [parameter.data_ptr() for parameter in self._views_of_x]
        self._counted = [parameter for parameter in self.parameters if not parameter.is_inference()]
        self._unseen = [parameter for parameter in self._views_of_x if not parameter.is_inference()]
        self.count()

    def part(self, index: int, piece: Tensor, start: int) -> Tensor:
        """A parameter's part of a ``piece`` [s] of a vector that begins at ``start``."""
        offset = piece.storage_offset() + self.segments[index].start - start
        return piece.as_strided(self.shapes[index], self.strides[index], offset)

    @torch.no_grad()
    def load(self, point: Tensor) -> None:
        """Put a point [d] into the module; autograd sees every parameter as written to."""
        if point.data_ptr() != self.x.data_ptr():
            self.x.copy_(point)
        for parameter, view in self._rounded:
            parameter.copy_(view)
        increment_version(self._unseen)  # copies to the others are seen
        self._writes += len(self._counted)

    def displaced(self) -> Tensor | None:
        """A parameter that is no longer a view of x, as its ``.data`` was replaced."""
        addresses = [parameter.data_ptr() for parameter in self._views_of_x]
        if addresses != self._addresses:
            for parameter, view in self._bound:
                if parameter.data_ptr() != view.data_ptr():
                    return parameter
            self._addresses = addresses  # x itself has moved (share_memory)
        return None

    def overwritten(self) -> bool:
        """Whether parameters were written to in place other than by ``load`` and, which shows nowhere, ``.data``."""
        return self._versions() != self._writes

    def count(self) -> None:
        """Count writes anew from here."""
        self._writes = self._versions()

    def _versions(self) -> int:
        return sum([parameter._version for parameter in self._counted])

    @torch.no_grad()
    def gather(self) -> None:
        """Let x follow parameters with memory of their own, in the numbers that are not those rounded from it."""
        for parameter, view in self._rounded:
            view.copy_(torch.where(view.to(parameter.dtype) == parameter, view, parameter.to(view.dtype)))

    def pieces(self) -> Pieces | None:
        """The parameters' gradients where they lie; None unless each is there, in its parameter's type and layout."""
        grads = []
        for parameter, stride in zip(self.parameters, self.strides, strict=True):
            grad = parameter.grad
            if grad is None or grad.is_sparse or grad.dtype != self.dtype or grad.stride() != stride:
                return None
            grads.append(grad)
        return Pieces(self, grads)

    @torch.no_grad()
    def gradient(self, views: Sequence[Tensor], *, add: bool = False) -> None:
        """Write, or ``add``, the parameters' gradients to ``views`` of a vector; those that are these stay.

        One that is not there is zero.

        Raises ValueError for a sparse gradient.
        """
        into, grads = [], []
        for parameter, view in zip(self.parameters, views, strict=True):
            grad = parameter.grad
            if grad is not None and grad is not view:
                refuse_sparse(grad)
                into.append(view)
                grads.append(grad)
            elif grad is None and not add:
                view.zero_()
        if grads:
            (torch._foreach_add_ if add else torch._foreach_copy_)(into, grads)


class Round(NamedTuple):
    """What the learners of an update bring."""

    turn: Turn
    losses: Sequence[Loss]  # [n]
    sums: Tensor | Pieces  # of gradients, [p, d]
    sent: Sent  # exchanges of them under way


class Pieces:
    """One gradient as row [1, d], left where backward has put it: for kernels that take lists, nothing is copied.

    ``grads`` are the parameters', in their layout. Good until the parameters' gradients change, so for an update
    that is made at once.
    """

    def __init__(self, vector: Vector, grads: list[Tensor]):
        self.grads, self.shape, self.dtype = grads, (1, vector.d), vector.dtype

    def __getitem__(self, row: int) -> Pieces:
        """Row 0, as a vector [d]."""
        return self

    def joined(self) -> Tensor:
        """The same as a tensor [1, d]."""
        return torch.cat([grad.as_strided((grad.numel(),), (1,)) for grad in self.grads])[None]
