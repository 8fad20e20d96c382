"""A module whose parameters, gradients and buffers are views of flat vectors.

Algorithms work on flat parameters [d]; networks want named tensors. Binding views once and copying the point in
costs one pass over [d] a step, and was faster than the plain eager loop on small networks, where calling the
module functionally was slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn

CACHE_LINE = 64  # bytes
# On a GPU cuDNN's batch norm of channels-last pictures reads four numbers at a time, and fails on weights that start
# elsewhere: parameters one behind the other, or rows of a matrix of points, may.
ALIGNMENT = 16  # bytes
MOST_REMEMBERED = 64  # vectors: points and memory of each learner
WORTH_BORROWING = 8192  # parameters per tensor above which attaching views costs less than copying the point


def consecutive(lengths: Iterable[int]) -> list[slice]:
    """Slices of these lengths, one behind the other."""
    return [slice(a, b) for a, b in pairwise(accumulate(lengths, initial=0))]


def arranged(pictures: Tensor) -> Tensor:
    """Pictures, or weights of convolutions, channels-last; tensors without four axes as they are."""
    return pictures.contiguous(memory_format=torch.channels_last) if pictures.dim() == 4 else pictures


def misaligned(part: Tensor) -> bool:
    """Whether a part of a vector starts where some kernels of a GPU cannot read it."""
    return bool(part.storage_offset() * part.element_size() % ALIGNMENT)


def aligned(part: Tensor) -> Tensor:
    """A part of a vector, or a copy of it where it is misaligned."""
    return part.clone() if misaligned(part) else part


class Layout:
    """Where tensors lie in a vector [d]: one behind the other, each in its own order of coordinates."""

    def __init__(self, shapes: Sequence[torch.Size], strides: Sequence[tuple[int, ...]]):
        self.shapes, self.strides = tuple(shapes), tuple(strides)
        self.segments = tuple(consecutive(map(math.prod, shapes)))  # of each tensor
        self.d = self.segments[-1].stop
        self.remembered: dict[int, list[Tensor]] = {}  # views of vectors, by their address

    def views(self, vector: Tensor) -> list[Tensor]:
        """The parts of a vector [d], or of rows [n, d], in the tensors' order, shapes (after n) and layout."""
        start, rows, along = vector.storage_offset(), vector.shape[:-1], vector.stride()[:-1]
        return [
            vector.as_strided((*rows, *shape), (*along, *stride), start + part.start)
            for part, shape, stride in zip(self.segments, self.shapes, self.strides, strict=True)
        ]

    def same_views(self, vector: Tensor) -> list[Tensor]:
        """The same of a vector [d] that comes again and again, such as an optimizer's memory: made once."""
        if (found := self.remembered.get(vector.data_ptr())) is None:
            if len(self.remembered) >= MOST_REMEMBERED:  # states were loaded since
                self.remembered.clear()
            found = self.remembered[vector.data_ptr()] = self.views(vector)
        return found


class FlatModule(Layout):
    """``module`` bound to flat ``x`` [d], ``grad`` [d] and ``buffers`` [q] (its floating-point buffers).

    With ``channels_last`` the weights of convolutions lie in that order inside the flat vector: the order of
    coordinates differs, which no elementwise rule can see.
    """

    def __init__(self, module: nn.Module, *, channels_last: bool = False):
        self.module = module
        self.channels_last = channels_last
        self.layout = torch.channels_last if channels_last else torch.contiguous_format  # of four axes
        self.names, self.parameters = zip(*module.named_parameters(), strict=True)
        shapes = [p.shape for p in self.parameters]
        formats = [self.layout if len(shape) == 4 else torch.contiguous_format for shape in shapes]
        like = [torch.empty(s, device="meta", memory_format=f) for s, f in zip(shapes, formats, strict=True)]
        super().__init__(shapes, [tensor.stride() for tensor in like])
        first = self.parameters[0]
        self.x = torch.empty(self.d, dtype=first.dtype, device=first.device)
        self.grad = torch.zeros_like(self.x)
        with torch.no_grad():
            for parameter, view, grad in zip(self.parameters, self.views(self.x), self.views(self.grad), strict=True):
                view.copy_(parameter)
                parameter.data = view
                parameter.grad = grad
        self._attached = self.x.data_ptr()  # where the vector lies that the parameters are views of; 0: none
        self._set_apart()
        floating = [(n, b) for n, b in module.named_buffers() if b.is_floating_point()]
        self.q = sum(b.numel() for _, b in floating)
        self.buffer_shapes = {name: b.shape for name, b in floating}
        self.buffers = torch.empty(self.q, dtype=first.dtype, device=first.device)
        views = self.named_buffers(self.buffers)
        for name, buffer in floating:
            views[name].copy_(buffer)
            owner, _, leaf = name.rpartition(".")
            module.get_submodule(owner)._buffers[leaf] = views[name]
        self.batch_norm = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules())
        self.dropout = any(isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0 for m in module.modules())

    def point(self) -> Tensor:
        """A copy of the parameters [d]."""
        return self.x.clone()

    def load(self, x: Tensor, buffers: Tensor | None = None) -> None:
        """Copy a point [d] (and buffers [q]) into the module."""
        self._attach(self.x)
        self.x.copy_(x)
        for parameter, view in self._apart:
            parameter.data.copy_(view)
        if self.q and buffers is not None:
            self.buffers.copy_(buffers)

    def load_for_test(self, x: Tensor, buffers: Tensor | None = None) -> None:
        """The same with the weights of convolutions channels-last, whatever their layout in [d].

        On hundreds of images oneDNN takes half the time where it finds them so. Call ``restore`` afterwards.
        """
        self.load(x, buffers)
        if self.channels_last:
            return
        for parameter in self.parameters:
            if parameter.dim() == 4:
                parameter.data = arranged(parameter.data)
                self._attached = 0

    def restore(self, buffers: Tensor) -> None:
        """The module's own vector again, and buffers [q]."""
        self._attach(self.x)
        self.buffers.copy_(buffers)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """The module in evaluation mode, without gradients; its buffers come out as they went in."""
        was_training, saved = self.module.training, self.buffers.clone()
        self.module.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.module.train(was_training)
            self.restore(saved)

    def borrow(self, x: Tensor, buffers: Tensor | None = None) -> None:
        """Let the module read a point [d] where it lies, until the next ``load`` or ``borrow``.

        Copies instead where that is cheaper (many small parameters), or where the point does not start on the same
        place of a cache line as the module's own vector: kernels may round differently there.
        """
        if (
            x.device.type != "cpu"
            or not x.is_contiguous()
            or x.dtype != self.x.dtype
            or self.d < WORTH_BORROWING * len(self.parameters)
            or (x.data_ptr() - self.x.data_ptr()) % CACHE_LINE
        ):
            self.load(x, buffers)
            return
        self._attach(x.detach())
        if self.q and buffers is not None:
            self.buffers.copy_(buffers)

    def _attach(self, x: Tensor) -> None:
        if x.data_ptr() == self._attached:
            return  # the parameters keep that memory alive, so it is the same vector still
        for parameter, view in zip(self.parameters, self.views(x), strict=True):
            parameter.data = view
        self._attached = x.data_ptr()
        self._set_apart()

    def _set_apart(self) -> None:
        """Give parameters memory of their own where a GPU could not read them; ``load`` copies into it."""
        on_gpu = self.x.device.type == "cuda"
        self._apart = [(p, p.data) for p in self.parameters if on_gpu and misaligned(p.data)]
        for parameter, view in self._apart:
            parameter.data = view.clone()

    def flatten(self, grads: Sequence[Tensor | None], out: Tensor) -> None:
        """Write gradients in the parameters' order into ``out`` [d]; an unused parameter's is zero."""
        parts = []
        for grad, like in zip(grads, self.parameters, strict=True):
            part = torch.zeros_like(like) if grad is None else grad
            if self.channels_last and part.dim() == 4:
                part = part.permute(0, 2, 3, 1)
            parts.append(part.reshape(-1))
        torch.cat(parts, out=out)

    def flatten_rows(self, grads: Mapping[str, Tensor]) -> Tensor:
        """Inverse of ``named``: gradients by name, each [n, ...], as rows [n, d]."""
        parts = []
        for name in self.names:
            part = grads[name]
            if self.channels_last and part.dim() == 5:
                part = part.permute(0, 1, 3, 4, 2)
            parts.append(part.flatten(1))
        return torch.cat(parts, 1)

    def named(self, x: Tensor) -> dict[str, Tensor]:
        """The parameters of a point [d], or of several [n, d], by name, as views [...] or [n, ...] in the layout."""
        return dict(zip(self.names, self.views(x), strict=True))

    def named_buffers(self, buffers: Tensor) -> dict[str, Tensor]:
        """The floating-point buffers of a row [q] by name, as views."""
        parts = buffers.split([math.prod(shape) for shape in self.buffer_shapes.values()])
        shaped = zip(self.buffer_shapes.items(), parts, strict=True)
        return {name: part.view(shape) for (name, shape), part in shaped}

    def counters(self) -> dict[str, Tensor]:
        """Copies of the integer buffers: batch norm counts in them, and calls side by side must not share one."""
        return {n: buffer.clone() for n, buffer in self.module.named_buffers() if not buffer.is_floating_point()}

    def scale(self, multipliers: dict[str, float]) -> Tensor | None:
        """Per-parameter multipliers as a vector [d]; None when all are one."""
        if all(value == 1 for value in multipliers.values()):
            return None
        vector = torch.ones_like(self.x)
        for name, part in zip(self.names, self.segments, strict=True):
            vector[part] = multipliers.get(name, 1.0)
        return vector
