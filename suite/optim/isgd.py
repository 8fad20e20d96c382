"""Inconsistent SGD as an optimiser, which may ask for another gradient of the same batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from reference_impls import isgd
from suite.communication.group import Group
from suite.optim import joining
from suite.optim.base import Algorithm
from suite.optim.core import Core


class Charted(Core):
    """A core whose control chart lies on the host, where it is decided by; only vectors lie on the device."""

    def own(self, state: Any) -> Any:
        state = super().own(state)
        if self.weights is None:
            return state
        vectors = ("x", "anchor", "memory")
        return state._replace(**{name: part.cpu() for name, part in state._asdict().items() if name not in vectors})

    def moved(self, state: Any, x: Tensor, *, centre: bool) -> Any:
        """With its chart, which has no centre."""
        return super().moved(state, x, centre=False)

    def ended(self, state: Any) -> Any:
        """The same state with no further step on its batch."""
        no = torch.zeros_like
        return state._replace(iteration=state.iteration + 1, chased=no(state.chased), chasing=no(state.chasing))


class ISGD(Algorithm):
    """Inconsistent SGD: batches whose loss lies above a control chart's limit are trained on again.

    Batches must come in one fixed cycle (FCPR, sections 2.3.3 and 3.1), the same examples in each, as the chart holds
    a batch's loss against those of the epoch before. A loader with ``shuffle=True`` makes up others in every epoch:
    the chart then takes the luck of a draw for a batch that lags behind, and nothing notices. Several processes share
    a batch: each closure computes the mean loss of its share, and all decide alike by the mean.

    Args:
        module: what is trained; its parameters become views of one vector.
        params: parameters or groups of them; by default all that require a gradient.
        lr: the rate of SGD; required unless groups have their own.
        momentum: of SGD.
        weight_decay: of SGD, coupled.
        batches: in an epoch, the length of the control chart.
        zeta: rate of the extra steps (Algorithm 2), which have neither momentum nor decay and move all groups alike.
        stop: extra steps on a batch at most; 0 is plain SGD.
        margin: of the limit above the mean loss, in standard deviations.
        fused: False is the solver of the papers' figures, several times slower; by default torch's fused SGD.
        group: processes to train with; by default all of ``torchrun``.

    Raises:
        ValueError: a setting out of its range, a module that cannot be trained this way, processes that differ.
        TypeError: a setting that it has not.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 1)
        >>> batches = torch.randn(4, 3, 2)  # [batches, examples, numbers], the same in every epoch
        >>> opt = ISGD(model, lr=0.01, momentum=0.9, batches=len(batches), zeta=0.01)
        >>> for batch in [*batches, *batches]:
        ...     def closure():
        ...         opt.zero_grad()
        ...         loss = model(batch).square().mean()
        ...         loss.backward()
        ...         return loss
        ...     loss = opt.step(closure)
        >>> opt.limit < float("inf")
        True

    Source: Linnan Wang et al., "Accelerating Deep Neural Network Training with Inconsistent Stochastic Gradient
    Descent", 2016, Algorithms 1 and 2, Eq. 10; ``reference_impls.isgd``.
    """

    core: Charted
    _no_join = "ISGD holds batches against those of the epoch before, so every process needs as many"

    def __init__(
        self,
        module: nn.Module,
        params: Iterable[Any] | None = None,
        *,
        lr: float | None = None,
        batches: int,
        zeta: float,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        stop: int = 5,
        margin: float = 3.0,
        fused: bool | None = None,
        group: Group | None = None,
        **unknown: Any,
    ):
        self._chosen: dict[str, Any] = {
            "batches": joining.whole("batches", batches, 2),
            "zeta": zeta,
            "stop": joining.whole("stop", stop),
            "margin": margin,
        }
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, **unknown}
        super().__init__(module, params, settings=settings, fused=fused, group=group)

    def _core(self, weights: Tensor | None) -> Core:
        return Charted(isgd.ISGD(self.solver, self._collective(), **self._chosen), weights)

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {"settings": str(self._chosen)}

    @property
    def limit(self) -> float:
        """The control chart's limit after the last batch, a loss; infinite in the first epoch."""
        return self.core_state.limit.item()

    def step(self, closure: Callable[[], Tensor] | None = None) -> Any:  # type: ignore[override]
        """A step on a new batch, and up to ``stop`` more on the same while its loss stays above the limit.

        An error of the closure in its first call leaves all as it was; a later one ends the steps on this batch.

        Args:
            closure: computes the mean loss of the batch [0-d] and its gradients, and returns the loss.

        Returns:
            The loss before the first step.

        Raises:
            TypeError: without a closure.
            ValueError: it returns no loss, or ``torch.amp.GradScaler`` makes the step.
        """
        if hasattr(self, "found_inf"):
            del self.found_inf  # GradScaler does not where a step fails
            raise ValueError(
                "ISGD cannot be stepped by GradScaler, which looks for overflow before the closure has computed the "
                "gradients; train with torch.autocast in bfloat16, which needs no scaling"
            )
        if closure is None:
            raise TypeError("ISGD.step needs a closure that computes the loss of the batch and its gradients")
        loss = self._gradient(closure)
        try:
            while self.core_state.chasing.item():
                self._gradient(closure)
        except BaseException:  # the chart has the loss of this batch, and what comes next is another's
            self.core_state = self.core.ended(self.core_state)
            raise
        return loss

    def _gradient(self, closure: Callable[[], Tensor]) -> Tensor:
        with torch.enable_grad():
            loss = closure()
        if loss is None or torch.as_tensor(loss).dim():
            raise ValueError("ISGD's closure must return the mean loss of the batch as one number (0-d)")
        self._take(loss)
        return loss
