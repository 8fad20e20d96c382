"""Where the optimisers touch the reference implementations: an algorithm, and where its weights lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from reference_impls.contract import Algorithm, GradientRef, Sent, Turn
from suite.communication.collectives import CompletedSum
from suite.optim.in_place import IN_PLACE, by_learner
from suite.optim.vector import Loss, Pieces

ONE = torch.ones(())  # the rate that algorithms are told: the groups' own rates are the solver's


class Core:
    """An algorithm with its solver and collective.

    ``weights`` [d] given, they become the state's own, and updates happen in them (:mod:`suite.optim.in_place`) where
    the rule has an update in place; another goes by the reference implementation.
    """

    def __init__(self, algorithm: Algorithm[Any], weights: Tensor | None = None):
        self.algorithm, self.weights = algorithm, weights
        self.rows = algorithm.collective.rows if algorithm.replicated else 1  # sets of weights held here
        self.by_learner = by_learner(algorithm) if weights is not None else None
        self.in_place = self.by_learner is not None or (weights is not None and type(algorithm) in IN_PLACE)

    def init(self, x0: Tensor) -> Any:
        """The state at weights x0 [d], the same for all workers."""
        return self.own(self.algorithm.init(x0))

    def own(self, state: Any) -> Any:
        """The same state with its weights where ``weights`` lie, if there is but one set of them."""
        if self.weights is None or self.rows > 1:
            return state
        name = "x" if hasattr(state, "x") else "replicas"
        self.weights.copy_(getattr(state, name).view(-1))
        return state._replace(**{name: self.weights.view_as(getattr(state, name))})

    def moved(self, state: Any, x: Tensor, *, centre: bool) -> Any:
        """The same state with all workers' weights at x [d]; with ``centre`` the common model too, then at rest."""
        names = ("x", "replicas", *(("centre", "previous", "common") if centre else ()))
        fields = {name: getattr(state, name) for name in names if hasattr(state, name)}
        moved = state._replace(**{name: x.expand_as(part).clone() for name, part in fields.items()})
        if centre and hasattr(state, "velocity"):  # of DiLoCo's outer step
            moved = moved._replace(velocity=torch.zeros_like(state.velocity))
        return self.own(moved)

    def round(self, t: int, first: int) -> Turn:
        """Update t, with a new gradient of each worker held here, of which ``first`` is the first."""
        return Turn(t, tuple(GradientRef(first + row, t, t) for row in range(self.rows)))

    def step(self, state: Any, turn: Turn, learner: int, gradient: Tensor | Pieces) -> None:
        """One learner's step from its gradient [1, d], in the state; for algorithms that have it ``by_learner``."""
        assert self.by_learner is not None
        self.by_learner[0](self.algorithm, state, turn, learner, gradient, ONE.to(gradient.dtype))

    def update(
        self, state: Any, turn: Turn, losses: Sequence[Loss], sums: Tensor | Pieces | None, sent: Sent = ()
    ) -> Any:
        """The state after a turn, from its losses and sums of gradients [p, d]; None after steps ``by_learner``."""
        if sums is None:
            assert self.by_learner is not None
            return self.by_learner[1](self.algorithm, state, turn)
        rate = ONE.to(sums.dtype)
        if self.algorithm.sends and turn.entries and not sent:
            on_its_way: Any = CompletedSum(sums) if isinstance(sums, Pieces) else self.algorithm.send(sums)  # type: ignore[arg-type]
            sent = ((slice(0, sums.shape[-1]), on_its_way),)  # in one piece
        if self.in_place:
            return IN_PLACE[type(self.algorithm)](self.algorithm, state, turn, losses, sums, rate, sent)
        assert isinstance(sums, Tensor)  # pieces are for updates in place
        told = [torch.as_tensor(loss, dtype=torch.float64, device=sums.device) for loss in losses]
        return self.algorithm.update(state, turn, torch.stack(told) if told else sums.new_zeros(0), sums, rate, sent)


def widened(before: Any, fresh: Any, old: int, d: int) -> Any:
    """A state over d parameters: what was known of the first ``old`` of them, and a beginner's of the rest."""
    if isinstance(fresh, Tensor) and fresh.dim() and fresh.shape[-1] == d and before.shape[-1] == old:
        return torch.cat([before, fresh[..., old:]], -1)
    if isinstance(fresh, tuple):
        parts = [widened(b, f, old, d) for b, f in zip(before, fresh, strict=True)]
        return type(fresh)(*parts) if hasattr(fresh, "_fields") else tuple(parts)
    return before
