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
decay are not printed; the descent holds the last two (plain SGD and Adam in the paper).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from reference_impls.contract import Ask, Collective, Descent, Told, Turn


class State(NamedTuple):
    x: Tensor  # [d]
    memory: Tensor  # the descent's


def init(config: None, x0: Tensor, workers: int, rows: int, descent: Descent) -> State:
    return State(x0.clone(), descent.init(x0))


def ask(config: None, state: State, turn: Turn) -> Ask:
    numbers = torch.tensor([entry.number for entry in turn.entries], device=state.x.device)
    return Ask(state.x[None], (len(turn.entries),), numbers)


def tell(
    config: None,
    state: State,
    turn: Turn,
    told: Told,
    *,
    collective: Collective,
    descent: Descent,
    lr: Tensor,
) -> State:
    gradient = collective.sum(told.sums)
    if collective.workers > 1:
        gradient = gradient / collective.workers
    return State(*descent.step(state.memory, state.x, gradient, lr))


def model(config: None, state: State, collective: Collective) -> Tensor:
    return state.x
