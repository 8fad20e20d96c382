"""MaTEx's exchange of gradients without a server: synchronous, layer-wise or delayed."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from reference_impls import matex_agd
from reference_impls.contract import Pending, Sent, Turn
from suite.communication.collectives import Alone, CompletedSum
from suite.communication.group import Group
from suite.optim.base import Algorithm
from suite.optim.core import Core
from suite.optim.joining import whole
from suite.optim.solver import Base
from suite.optim.steps import Collected
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


class Resting(Alone):
    """The one worker, whose gradients rest where they are until they are applied."""

    def start(self, rows: Tensor, each: int | None = None) -> CompletedSum:
        return CompletedSum(self.sum(rows, each))


class DelayedSGD(Algorithm):
    """Gradients averaged over processes without a server: synchronous, layer by layer, or some updates late.

    All processes hold the same weights. With ``zero_grad(set_to_none=False)`` backward writes where sums are formed,
    and no gradient is ever copied.

    Args:
        module: what is trained, compiled or not; its parameters become views of one vector.
        params: parameters or groups of them; by default all that require a gradient.
        lr: learning rate of the steps; required unless ``base`` is an instance or groups have their own.
        momentum: of SGD, 0 by default; or of ``base``.
        weight_decay: L2 of SGD, 0 by default; or of ``base``.
        delay: updates from a gradient to its application; 0 is synchronous, the paper has 0 to 3. The later it is,
            the smaller is the largest ``lr`` at which a network trains.
        layerwise: send each layer's gradient as soon as backward has produced it. Gradients then must not be changed
            between backward and step (clipping, ``GradScaler``), nor added up over several backward passes, which
            raises; only a change by ``grad.data`` leaves no trace. Those that are assigned leave with the step.
        order: in which layers' sums are applied: from the last layer to the first, as they arrive ("completed"), or
            after all have arrived ("all"). All end in the same bits.
        bucket_bytes: layer-wise exchange joins neighbouring tensors up to this size into one sum; 0 sends each alone.
        base: the optimiser, a class of ``torch.optim`` or an instance, instead of SGD. The paper shows
            nothing about another than SGD.
        fused: False is the solver of the papers' figures, several times slower; by default torch's fused SGD.
        group: processes to train with; by default all of ``torchrun``.
        options: further settings of ``base``, such as ``betas``.

    Raises:
        ValueError: a setting out of its range, a module that cannot be trained this way, processes that differ.
        TypeError: no ``lr``, or a setting that neither SGD nor ``base`` has.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 1)
        >>> opt = DelayedSGD(model, lr=0.05, momentum=0.9, delay=1)
        >>> for _ in range(3):  # batches of this process
        ...     opt.zero_grad()
        ...     model(torch.ones(3, 2)).square().mean().backward()
        ...     opt.step()  # sends this gradient, applies the one of the update before
        >>> opt.finish()  # applies the one under way
        >>> opt.t
        4

    Source: Jeff Daily, Abhinav Vishnu and Charles Siegel, "Leveraging Asynchronicity in Gradient Descent for Scalable
    Deep Learning", 2017, sections 4.1 to 4.3; ``reference_impls.matex_agd``.
    """

    def __init__(
        self,
        module: nn.Module,
        params: Iterable[Any] | None = None,
        *,
        lr: float | None = None,
        momentum: float | None = None,
        weight_decay: float | None = None,
        base: Base | None = None,
        delay: int = 0,
        layerwise: bool = False,
        order: Literal["backward", "completed", "all"] = "backward",
        bucket_bytes: int = 0,
        fused: bool | None = None,
        group: Group | None = None,
        **options: Any,
    ):
        self._delay, self._bucket_bytes = whole("delay", delay), whole("bucket_bytes", bucket_bytes)
        self._layerwise, self._order = layerwise, order
        self._at_once = delay == 0
        if layerwise:
            self._no_join = "layer-wise exchange sends gradients before the step; join() needs layerwise=False"
        self._departures: Departures | None = None
        self._written_in_place = False  # gradients of the parameters are views of the vector that is summed
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, **options}
        super().__init__(module, params, settings=settings, base=base, fused=fused, group=group)

    def _core(self, weights: Tensor | None) -> Core:
        alone = self.group.size == 1
        collective = Resting() if alone else self._collective(lanes=max(1, self._delay), in_place=True)
        return Core(matex_agd.DelayedSGD(self.solver, collective, self._delay, self._order), weights)

    def _facts(self) -> dict[str, Any]:
        own = {"delay": self._delay, "layerwise": self._layerwise, "bucket size": self._bucket_bytes}
        return super()._facts() | own

    def _lay_out(self) -> None:
        """A gradient [d] stays where it is until its sum is applied, so there are ``delay`` more of them."""
        super()._lay_out()
        self._rests = self._delay or self._layerwise or self.group.size > 1  # what is sent has memory of its own
        if self._rests:
            self._reserve(1)
        slots = [torch.zeros_like(self._gradients) for _ in range(self._delay)]
        self._slots = [self._gradients, *slots]
        self._slot_views = [
            [view.data for row in slot for view in self.vector.views(row)]  # .data: changes of each are counted apart
            for slot in self._slots
        ]
        self.close()
        if self._layerwise:
            self._departures = Departures(self.vector, self._bucket_bytes, self._send)

    def _send(self, rows: Tensor) -> Pending:
        return self.core.algorithm.send(rows)

    def close(self) -> None:
        """Watch backward no longer: for a layer-wise optimiser that is kept while another one takes its parameters.

        One that is forgotten, or whose parameters a newer optimiser has taken, ends its watch by itself.
        """
        if self._departures:
            self._departures.close()
        self._departures = None

    def _require_rest(self, what: str) -> None:
        if self.core.algorithm.under_way(self.core_state):
            raise ValueError(f"{what} came with exchanges under way; call finish() first")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients. With ``set_to_none=False`` backward writes the next ones where they are summed.

        Nothing is copied then; but after ``step`` that memory is the sum's, and the parameters have no gradients. One
        process that exchanges with nobody, without delay, steps them where they lie and leaves them there.
        Called in place of ``step`` it skips the batch, which every process must then skip.

        Args:
            set_to_none: leave the parameters without gradients, as torch's optimisers do.
        """
        if self._departures and self._departures.begun:
            self._departures.forget()
        if set_to_none or self._rests:
            super().zero_grad()
        if set_to_none:
            return
        if not self._rests:
            super().zero_grad(set_to_none=False)
            return
        torch._foreach_zero_(self._views[0])
        for parameter, view in zip(self.vector.parameters, self._views[0], strict=True):
            if parameter.dtype == view.dtype:
                parameter.grad = view
        self._written_in_place = True

    def _load(self) -> None:
        super()._load()
        if self._written_in_place:
            for parameter, view in zip(self.vector.parameters, self._views[0], strict=True):
                if parameter.grad is view:
                    parameter.grad = None
            self._written_in_place = False
        if self._rests:
            slot = self.t % len(self._slots)
            self._gradients, self._views = self._slots[slot], [self._slot_views[slot]]
        if self._departures:
            self._departures.begin(self._gradients[0], self._views[0])

    def _any_gradient(self) -> bool:
        return super()._any_gradient() or (self._departures is not None and self._departures.begun)

    def _overflowed(self) -> bool:
        """Refuses ``GradScaler``: what has left is scaled, and ``unscale_`` undoes that without a trace."""
        if self._departures and getattr(self, "found_inf", None) is not None:
            raise ValueError(CHANGED)
        return super()._overflowed()

    def _collect(self, learner: int) -> Collected:
        if self._departures:
            return self._gradients, self._departures.finish()
        return super()._collect(learner)

    def _settle(self) -> None:
        if self._departures:
            self._departures.settle()
        for sent in self.core_state.late:
            for _, pending in sent:
                pending.wait()

    def take_up(self) -> None:
        self._require_rest("take_up")
        self._settle()  # sums of layers that backward has sent already
        super().take_up()

    def finish(self) -> None:
        """Apply the exchanges still under way; training may go on afterwards."""
        self._notice()
        while self.core.algorithm.under_way(self.core_state):
            self._tell(Turn(self.t, ()), [], self._gradients)
        with torch.no_grad():
            self._load()
