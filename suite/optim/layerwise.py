"""Gradients that leave in segments while backward still runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from reference_impls.contract import Pending, Sent
from suite.optim.vector import Vector, refuse_sparse
from suite.training.buckets import buckets

CHANGED = (
    "a gradient was changed between backward and step (clipping? GradScaler?) when layer-wise exchange had sent it "
    "already; exchange with layerwise=False"
)


class Departures:
    """Copies each gradient to its place in a vector as backward produces it, and sends every segment that is full.

    Segments leave in one fixed order, from the last parameters to the first, whatever order autograd meets them
    in: a segment that is ready early waits for those before it, so that every process starts the same sums in the
    same order even if their graphs differ. Parameters that got no gradient are sent as zeros at the end.
    """

    def __init__(self, vector: Vector, limit: int, send: Callable[[Tensor], Pending]):
        self._vector, self._send = vector, send
        self._parts = buckets(vector, limit)
        self._home = [
            next(i for i, part in enumerate(self._parts) if part.start <= own.start and own.stop <= part.stop)
            for own in vector.segments
        ]
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(lambda _, index=index: self._filled(index))
            for index, parameter in enumerate(vector.parameters)
        ]

    def close(self) -> None:
        """Watch backward no longer."""
        for hook in self._hooks:
            hook.remove()

    def begin(self, gradient: Tensor, views: Sequence[Tensor]) -> None:
        """Gradients go to ``gradient`` [d], of which ``views`` are the parameters', from here on."""
        self._gradient, self._views = gradient, views
        self._versions: list[tuple[Tensor, int] | None] = [None] * len(views)  # of the gradients copied
        self._missing = [{i for i, at in enumerate(self._home) if at == home} for home in range(len(self._parts))]
        self._sent: list[tuple[slice, Pending]] = []

    @property
    def begun(self) -> bool:
        """Whether backward has produced a gradient since ``begin``."""
        return any(seen is not None for seen in self._versions)

    @torch.no_grad()
    def _filled(self, index: int) -> None:
        grad = self._vector.parameters[index].grad
        assert grad is not None
        refuse_sparse(grad)
        if self._versions[index] is not None:
            raise RuntimeError(
                "layer-wise exchange sends a gradient once it is there, and backward ran twice before the step; call "
                "step once per backward pass, or exchange with layerwise=False"
            )
        if grad is not self._views[index]:
            self._views[index].copy_(grad)
        self._versions[index] = grad, grad._version
        self._missing[self._home[index]].discard(index)
        while len(self._sent) < len(self._parts) and not self._missing[len(self._sent)]:
            self._leave()

    def _leave(self) -> None:
        part = self._parts[len(self._sent)]
        self._sent.append((part, self._send(self._gradient[None, part])))

    def settle(self) -> None:
        """Wait for all sums of a backward pass that no step followed; what had not left does, as elsewhere it may."""
        while any(self._versions) and len(self._sent) < len(self._parts):
            self._leave()
        for _, pending in self._sent:
            pending.wait()

    def finish(self) -> Sent:
        """After backward: send what has not left yet; the segments with their sums, in the order they left.

        Raises ValueError for a gradient that was changed after it had been sent; by its ``.data`` it can be unseen.
        """
        for index, seen in enumerate(self._versions):
            if seen is None:
                self._views[index].zero_()
            elif seen[0]._version != seen[1] or self._vector.parameters[index].grad is not seen[0]:
                raise ValueError(CHANGED)
        while len(self._sent) < len(self._parts):
            self._leave()
        return tuple(self._sent)
