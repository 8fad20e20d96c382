"""Gradients that leave in segments while backward still runs."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from reference_impls.contract import Pending, Sent
from suite.optim.vector import Vector, refuse_sparse
from suite.training.schedules import buckets

CHANGED = (
    "a gradient was changed between backward and step (clipping? GradScaler?) when layer-wise exchange had sent it "
    "already; exchange with layerwise=False"
)


class Departures:
    """Copies each gradient to its place in a vector as backward produces it, and sends every segment that is full.

    Segments leave in one fixed order, from the last parameters to the first, whatever order autograd meets them
    in: a segment that is ready early waits for those before it, so that every process starts the same sums in the
    same order even if their graphs differ. A gradient that backward did not produce is sent at the end: one that was
    assigned to its parameter, or zeros. The hooks do not keep the optimiser alive and end with it.
    """

    def __init__(self, vector: Vector, limit: int, send: Callable[[Tensor], Pending]):
        """``send`` is a method of the optimiser, held weakly."""
        self._vector, self._send = vector, weakref.WeakMethod(send)
        self._parts = [
            part for part in buckets(vector.segments, vector.x.element_size(), limit) if part.stop > part.start
        ]
        self._home = [
            next(i for i, part in enumerate(self._parts) if part.start <= own.start and own.stop <= part.stop)
            for own in vector.segments
        ]
        here = weakref.ref(self)
        hooks = contextlib.ExitStack()
        for index, parameter in enumerate(vector.parameters):
            hooks.callback(parameter.register_post_accumulate_grad_hook(_hook(here, index)).remove)
        self.close = weakref.finalize(self, hooks.close)  # watches backward no longer

    def begin(self, gradient: Tensor, views: Sequence[Tensor]) -> None:
        """Gradients go to ``gradient`` [d], of which ``views`` are the parameters', from here on."""
        self._gradient, self._views = gradient, views
        self._seen: list[tuple[Tensor, int] | None] = [None] * len(views)  # gradients copied, with their versions
        self._missing = [{i for i, at in enumerate(self._home) if at == home} for home in range(len(self._parts))]
        self._sent: list[tuple[slice, Pending]] = []
        self.begun = False  # backward has produced a gradient

    @torch.no_grad()
    def filled(self, index: int) -> None:
        """Backward has produced the gradient of a parameter."""
        if not self.begun and self._vector.displaced() is not None:
            self.close()  # a newer optimiser has the parameters
            return
        grad = self._vector.parameters[index].grad
        assert grad is not None
        refuse_sparse(grad)
        if (seen := self._seen[index]) is not None:
            if grad is seen[0] or grad.requires_grad:  # added to, not made anew after zero_grad
                raise RuntimeError(
                    "layer-wise exchange sends a gradient once it is there, and backward ran twice before the step; "
                    "call step once per backward pass, or zero_grad() of the optimiser to skip a step, or exchange "
                    "with layerwise=False"
                )
            self.forget()
        if grad is not self._views[index]:
            self._views[index].copy_(grad)
        self._seen[index], self.begun = (grad, grad._version), True
        self._missing[self._home[index]].discard(index)
        while len(self._sent) < len(self._parts) and not self._missing[len(self._sent)]:
            self._leave()

    def _leave(self) -> None:
        send = self._send()
        assert send is not None
        part = self._parts[len(self._sent)]
        self._sent.append((part, send(self._gradient[None, part])))

    def settle(self) -> None:
        """Wait for all sums of a backward pass that no step followed; what had not left does, as elsewhere it may."""
        while self.begun and len(self._sent) < len(self._parts):
            self._leave()
        for _, pending in self._sent:
            pending.wait()

    def forget(self) -> None:
        """The step of the last backward pass is skipped, as every process must."""
        self.settle()
        self.begin(self._gradient, self._views)

    def finish(self) -> Sent:
        """After backward: send what has not left yet; the segments with their sums, in the order they left.

        Raises ValueError for a gradient that was changed after it had been sent; by its ``.data`` it can be unseen.
        """
        for parameter, view, seen in zip(self._vector.parameters, self._views, self._seen, strict=True):
            if seen is not None:
                if parameter.grad is not seen[0] or seen[0]._version != seen[1]:
                    raise ValueError(CHANGED)
            elif parameter.grad is None:
                view.zero_()
            elif parameter.grad is not view:  # assigned
                refuse_sparse(parameter.grad)
                view.copy_(parameter.grad)
        while len(self._sent) < len(self._parts):
            self._leave()
        return tuple(self._sent)


def _hook(departures: weakref.ref[Departures], index: int) -> Callable[[Tensor], None]:
    def filled(_: Tensor) -> None:
        if (here := departures()) is not None:
            here.filled(index)

    return filled
