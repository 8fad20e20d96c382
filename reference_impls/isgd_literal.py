"""Algorithms 1 and 2 of ISGD as loops that branch: the slow twin of :mod:`reference_impls.isgd`.

Citation, notation and departures stand there. Here the queue is a queue and STD is computed over it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from reference_impls.contract import Descent

ForwardBackward = Callable[[Tensor, int], tuple[Tensor, Tensor]]  # (w [d], t) -> (psi [], gradient [d])


class Iteration(NamedTuple):
    """What one pass through the loop of Algorithm 1 saw."""

    psi: float
    mean: float
    limit: float
    chased: int  # steps of Algorithm 2


def isgd(
    w: Tensor,
    forward_backward: ForwardBackward,
    *,
    gradients: int,
    n: int,
    stop: int,
    zeta: float,
    margin: float,
    refill: bool,
    descent: Descent,
    eta: Tensor,
) -> tuple[Tensor, list[Iteration]]:
    """Weights [d] and the record of each iteration once ``gradients`` gradients are spent.

    ``refill=False`` is the printed queue, which only empties; ``refill=True`` pushes each new loss.
    """
    lossqueue: deque[float] = deque()
    memory, mean, record = descent.init(w), 0.0, []
    t = spent = 0
    while spent < gradients:
        loss, gradient = forward_backward(w, t)
        psi, spent, limit = float(loss), spent + 1, float("inf")
        if t < n:
            lossqueue.append(psi)
            mean = (mean * t + psi) / (t + 1)
        elif lossqueue:
            mean = (mean * n - lossqueue.popleft() + psi) / n
            if refill:
                lossqueue.append(psi)
            if lossqueue:
                window = torch.tensor(list(lossqueue), dtype=torch.float64)
                limit = mean + margin * float(window.std(correction=0))
        before = w
        w, memory = descent.step(memory, w, gradient, eta)
        chased = 0
        if psi > limit and t > n:
            current = psi
            while chased < stop and current > limit and spent < gradients:
                loss, gradient = forward_backward(w, t)
                current, spent = float(loss), spent + 1
                w = w - zeta * ((current - limit) * gradient + (w - before) / w.numel())
                chased += 1
        record.append(Iteration(psi, mean, limit, chased))
        t += 1
    return w, record
