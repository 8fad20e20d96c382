"""Lookahead: k steps forward, one step back.

Michael R. Zhang, James Lucas, Geoffrey Hinton and Jimmy Ba, "Lookahead Optimizer: k steps forward, 1 step back",
NeurIPS 2019 (arXiv 1907.08610), Algorithm 1.

    paper   | code   | shape | meaning
    phi     | slow   | [d]   | slow weights, those that are evaluated
    theta   | x      | [d]   | fast weights
    k       | k      |       | steps of the inner optimizer A between two synchronisations
    alpha   | alpha  |       | step of the slow weights towards the fast ones

The optimizer is A. Its memory is kept when the weights are synchronised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from reference_impls.contract import Algorithm, Points, Sent, Turn
from reference_impls.numbers import on_device


class State(NamedTuple):
    x: Tensor  # [d]
    memory: Tensor  # the optimizer's
    slow: Tensor  # [d]


@dataclass(frozen=True)
class Lookahead(Algorithm[State]):
    """Lookahead around any optimizer; ``alpha`` = 1 is the optimizer alone."""

    k: int = 5
    alpha: float = 0.5

    def __post_init__(self) -> None:
        if self.k < 1 or not 0 < self.alpha <= 1:
            raise ValueError(f"Lookahead: k={self.k} must be at least 1, alpha={self.alpha} above 0 and at most 1")

    def init(self, x0: Tensor) -> State:
        return State(x0.clone(), self.optimizer.init(x0), x0.clone())

    def points(self, state: State, turn: Turn) -> Points:
        numbers = on_device([entry.number for entry in turn.entries], state.x.device)
        return Points(state.x[None], (len(turn.entries),), numbers)

    def update(
        self, state: State, turn: Turn, losses: Tensor, gradients: Tensor, lr: Tensor, sent: Sent = ()
    ) -> State:
        gradient = self.collective.sum(gradients) / self.collective.workers
        x, memory = self.optimizer.step(state.memory, state.x, gradient, lr)
        if (turn.t + 1) % self.k:
            return State(x, memory, state.slow)
        slow = state.slow.lerp(x, self.alpha)  # phi + alpha (theta - phi)
        return State(slow.clone(), memory, slow)

    def model(self, state: State) -> Tensor:
        return state.slow
