"""Mini-batch stochastic gradient descent, whose updates to converge follow the inverse law.

Michael P. Perrone, Haidar Khan, Changhoan Kim, Anastasios Kyrillidis, Jerry Quinn and Valentina Salapura,
"Optimal Mini-Batch Size Selection for Fast Gradient Descent", 2019 (arXiv 1911.06459). The paper times plain
SGD; its own contribution, Equations 1-12, is in :mod:`reference_impls.inverse_law_model`.

Update rule:

    w_{k+1} = w_k - eta (1/M) sum_{i in batch} grad f_i(w_k)

    paper | code              | shape | unit
    w_k   | x                 | [d]   | parameters
    M     | examples per turn |       | examples, over all P learners
    P     | workers           |       | learners, each with M / P examples
    eta   | lr                | []    | learning rate

The model evaluated is w.

Differs from the paper: nothing known. How batches are drawn, the momentum and the constant of the weight
decay are not printed; the optimizer holds the last two (plain SGD and Adam in the paper).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from reference_impls.contract import Algorithm, Points, Sent, Turn
from reference_impls.numbers import on_device


class SGDState(NamedTuple):
    x: Tensor  # [d]
    memory: Tensor  # the optimizer's


@dataclass(frozen=True)
class SGD(Algorithm[SGDState]):
    """Mini-batch SGD. All of it but the mean over workers is the optimizer's."""

    reads_turn = False
    keeps_parameters = keeps_memory = False

    def init(self, x0: Tensor) -> SGDState:
        return SGDState(x0.clone(), self.optimizer.init(x0))

    def points(self, state: SGDState, turn: Turn) -> Points:
        numbers = on_device([entry.number for entry in turn.entries], state.x.device)
        return Points(state.x[None], (len(turn.entries),), numbers)

    def update(
        self, state: SGDState, turn: Turn, losses: Tensor, gradients: Tensor, lr: Tensor, sent: Sent = ()
    ) -> SGDState:
        gradient = self.collective.sum(gradients)
        if self.collective.workers > 1:
            gradient = gradient / self.collective.workers
        return SGDState(*self.optimizer.step(state.memory, state.x, gradient, lr))

    def model(self, state: SGDState) -> Tensor:
        return state.x
