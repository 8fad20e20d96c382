"""Gradients that leave in buckets while backward still runs, and the buffers they lie in meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from reference_impls.contract import Pending, Sent
from suite.training.flat import FlatModule


def buckets(flat: FlatModule, limit: int) -> tuple[slice, ...]:
    """Contiguous buckets of [d] in backward order: neighbouring parameters joined up to ``limit`` bytes.

    A parameter larger than the limit is a bucket by itself; ``limit`` 0 gives one bucket per parameter.
    Raises ValueError for a negative limit.
    """
    if limit < 0:
        raise ValueError(f"bucket_bytes={limit} must not be negative; 0 sends every parameter by itself")
    item = flat.x.element_size()
    parts: list[slice] = []
    for part in reversed(flat.segments):
        if parts and (parts[-1].stop - part.start) * item <= limit:
            parts[-1] = slice(part.start, parts[-1].stop)
        else:
            parts.append(part)
    return tuple(parts)


class Backward:
    """Collects the gradient of one update and sends each bucket as soon as backward has filled it.

    Buckets leave in one fixed order, from the last parameters to the first, whatever order autograd meets them
    in: a bucket that is ready early waits for those before it, so that every worker starts the same sums in the
    same order even if their graphs differ. Parameters that got no gradient are sent as zeros at the end.

    ``slots`` buffers are used in turn: the gradient of update t stays untouched until update t + slots, which
    lets a sum run in place where backward left it.
    """

    def __init__(
        self, flat: FlatModule, slots: int, parts: tuple[slice, ...], send: Callable[[Tensor], Pending] | None
    ):
        self._flat, self._parts, self._send = flat, parts, send
        self._parameters = list(flat.module.parameters())
        self.buffers = [flat.grad, *(flat.grad.clone() for _ in range(slots - 1))]
        self._views = [list(flat.named(buffer).values()) for buffer in self.buffers]
        self.gradient = flat.grad  # [d] of the update under way
        self._home = [
            next(i for i, part in enumerate(parts) if part.start <= own.start and own.stop <= part.stop)
            for own in flat.segments
        ]
        self._missing: list[set[int]] = []
        self._sent: list[tuple[slice, Pending]] = []
        if send is not None and len(parts) > 1:
            for index, parameter in enumerate(self._parameters):
                parameter.register_post_accumulate_grad_hook(lambda _, index=index: self._filled(index))

    def start(self, t: int) -> None:
        """Make the buffer of update t the module's gradient, zeroed."""
        slot = t % len(self.buffers)
        self.gradient = self.buffers[slot]
        self.gradient.zero_()
        for parameter, view in zip(self._parameters, self._views[slot], strict=True):
            parameter.grad = view
        self._missing = [set() for _ in self._parts]
        for index, home in enumerate(self._home):
            self._missing[home].add(index)
        self._sent = []

    def _filled(self, index: int) -> None:
        home = self._home[index]
        if index not in self._missing[home]:
            raise RuntimeError(
                "layer-wise exchange sends a gradient once it is there, and backward ran twice; "
                "call update once per backward pass"
            )
        self._missing[home].discard(index)
        while len(self._sent) < len(self._parts) and not self._missing[len(self._sent)]:
            self._leave()

    def _leave(self) -> None:
        part = self._parts[len(self._sent)]
        assert self._send is not None
        self._sent.append((part, self._send(self.gradient[None, part])))

    def finish(self) -> Sent:
        """After backward: send what has not left yet; the buckets with their sums, in the order they left."""
        if self._send is None:
            return ()
        while len(self._sent) < len(self._parts):
            self._leave()
        return tuple(self._sent)
