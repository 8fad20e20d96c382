"""Where the optimisers touch the reference implementations: an algorithm with all that it is handed bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from reference_impls.contract import Ask, Collective, Descent, Entry, Told, Turn
from suite.optim.in_place import IN_PLACE

ONE = torch.ones(())  # the rate that algorithms are told: the groups' own rates are the solver's


class Core:
    """``algorithm`` (a module that satisfies ``contract.Algorithm``) with configuration, collective and solver.

    ``weights`` [d] given, they become the state's own, and updates happen in them (:mod:`suite.optim.in_place`).
    """

    def __init__(
        self,
        algorithm: Any,
        config: Any,
        collective: Collective,
        solver: Descent,
        rows: int = 1,
        weights: Tensor | None = None,
    ):
        self.algorithm, self.config, self.collective, self.solver = algorithm, config, collective, solver
        self.rows, self.weights = rows, weights
        self._tell = algorithm.tell if weights is None else IN_PLACE[algorithm]

    def init(self, x0: Tensor) -> Any:
        """The state at weights x0 [d], the same for all workers."""
        return self.own(self.algorithm.init(self.config, x0, self.collective.workers, self.rows, self.solver))

    def own(self, state: Any) -> Any:
        """The same state with its weights where ``weights`` lie, if there is but one set of them."""
        if self.weights is None or self.rows > 1:
            return state
        name = "x" if hasattr(state, "x") else "replicas"
        self.weights.copy_(getattr(state, name).view(-1))
        return state._replace(**{name: self.weights.view_as(getattr(state, name))})

    def round(self, t: int, first: int) -> Turn:
        """Update t, with a new gradient of each worker held here, of which ``first`` is the first."""
        return Turn(t, tuple(Entry(first + row, t, t) for row in range(self.rows)))

    def ask(self, state: Any, turn: Turn) -> Ask:
        """Points at which the turn's gradients are wanted."""
        return self.algorithm.ask(self.config, state, turn)

    def send(self, rows: Tensor) -> Any:
        """Begin exchanging rows [m, s] of gradients, for algorithms that do so themselves; a Pending."""
        return self.algorithm.send(self.config, rows, self.collective)

    def update(self, state: Any, turn: Turn, losses: Sequence[Tensor], sums: Tensor, sent: Any = ()) -> Any:
        """The state after a turn, from its losses (0-d each) and sums of gradients [p, d]."""
        told = Told(torch.stack(tuple(losses)) if losses else sums.new_zeros(0), sums, sent)
        return self._tell(
            self.config,
            state,
            turn,
            told,
            collective=self.collective,
            descent=self.solver,
            lr=ONE.to(sums.dtype),
        )

    def model(self, state: Any) -> Tensor:
        """The weights [d] that the paper evaluates. Every worker must ask, as some algorithms exchange here."""
        return self.algorithm.model(self.config, state, self.collective)
