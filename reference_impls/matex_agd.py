"""MaTEx: synchronous, layer-wise and delayed gradient descent without a server.

Jeff Daily, Abhinav Vishnu and Charles Siegel, "Leveraging Asynchronicity in Gradient Descent for Scalable
Deep Learning", under review at ICLR 2017, sections 4.1-4.3 (its Algorithm 1 is back-propagation).

Update rules, with n devices of which device j has gradient g_j(w_t) of its share of the batch:

    synchronous:  w_{t+1} = w_t - lambda (1/n) sum_j g_j(w_t)                               (4.1)
    layer-wise:   the same; each bucket's sum starts as soon as backward has produced it,   (4.2)
                  and buckets are applied after all have arrived ("all"), each in its turn
                  from the last layer to the first ("backward"), or as they arrive ("completed")
    delayed by k: w_{t+1} = w_t - lambda (1/n) sum_j g_j(w_{t-k});  w_k = ... = w_0          (4.3)
                  and k turns without new gradients at the end apply those still under way

    paper             | code        | shape      | unit
    w, b              | x           | [d]        | parameters
    gradient          | gradients   | [1, d]     | gradient, summed over the devices held here
    lambda            | lr          | []         | learning rate
    n                 | workers     |            | compute devices
    1, 2, 3 "comm"    | delay       |            | updates
    gradient buffers  | late        | delay      | sums under way, oldest first

The model evaluated is w.

Differs from the paper:
- The update is printed with a plus sign, which would climb; ours descends.
- The fate of momentum and weight decay when a gradient is late is not stated and the authors' Caffe is not
  public. ``solver="arrival"``: the solver sees the late gradient as if it were new, so decay pulls at the
  weights of the day (Caffe regularises after the reduction). ``solver="read"``: the step is the one that
  the weights the gradient was computed on would have taken, and is added to those of the day; it keeps
  ``delay`` old versions. The two differ only in the weights that the decay sees.
- Momentum is kept as it is, which makes delay far costlier than the paper's silence suggests: on a quadratic the
  largest stable lambda x curvature falls from 2, 1, 0.62, 0.45 (k = 0 to 3) without momentum to 3.8, 0.1, 0.051,
  0.035 with the Caffe default of 0.9.
- In the first k turns nothing is due and nothing moves, momentum included. Draining is ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from reference_impls.contract import Algorithm, Points, Sent, Turn
from reference_impls.numbers import on_device


class DelayedSGDState(NamedTuple):
    x: Tensor  # [d]
    memory: Tensor  # the optimizer's
    late: tuple[Sent, ...]  # `delay` exchanges under way, oldest first; () where there is none
    read: tuple[Tensor, ...]  # with solver="read": the weights [d] that each of them was computed on


@dataclass(frozen=True)
class DelayedSGD(Algorithm[DelayedSGDState]):
    """Delay 0 is synchronous, or layer-wise. Raises ValueError for a negative delay or an unknown order or solver."""

    delay: int = 0  # updates; the paper has 0 to 3
    order: Literal["all", "backward", "completed"] = "all"
    solver: Literal["arrival", "read"] = "arrival"

    sends = True

    def __post_init__(self) -> None:
        if self.delay < 0:
            raise ValueError(f"matex_agd: delay={self.delay} must be 0 or more updates")
        if self.order not in ("all", "backward", "completed"):
            raise ValueError(f"matex_agd: order={self.order!r} must be 'all', 'backward' or 'completed'")
        if self.solver not in ("arrival", "read"):
            raise ValueError(f"matex_agd: solver={self.solver!r} must be 'arrival' or 'read'")

    def init(self, x0: Tensor) -> DelayedSGDState:
        read = (x0.clone(),) * self.delay if self.solver == "read" else ()
        return DelayedSGDState(x0.clone(), self.optimizer.init(x0), ((),) * self.delay, read)

    def points(self, state: DelayedSGDState, turn: Turn) -> Points:
        numbers = on_device([entry.number for entry in turn.entries], state.x.device)
        return Points(state.x[None], (len(turn.entries),), numbers)

    def update(
        self, state: DelayedSGDState, turn: Turn, losses: Tensor, gradients: Tensor, lr: Tensor, sent: Sent = ()
    ) -> DelayedSGDState:
        if turn.entries and not sent:
            sent = ((slice(0, state.x.numel()), self.send(gradients)),)
        due, *late = (*state.late, sent)
        read, *kept = (*state.read, state.x)
        state = state._replace(late=tuple(late), read=tuple(kept))
        if not due:
            return state

        x, steps = state.x, []
        for part, total in arrivals(self.order, due):
            gradient = total / self.collective.workers
            stepped, memory = self.optimizer.step(state.memory[..., part], read[part], gradient, lr, part)
            if read is not x:
                stepped = x[part] + (stepped - read[part])
            steps.append((part.start or 0, stepped, memory))
        steps.sort(key=lambda step: step[0])
        return state._replace(
            x=torch.cat([stepped for _, stepped, _ in steps]),
            memory=torch.cat([memory for _, _, memory in steps], dim=-1),
        )

    def model(self, state: DelayedSGDState) -> Tensor:
        return state.x

    def under_way(self, state: DelayedSGDState) -> int:
        return max((place + 1 for place, sent in enumerate(state.late) if sent), default=0)


def arrivals(order: str, sent: Sent) -> Iterator[tuple[slice, Tensor]]:
    """Buckets and their sums in the order in which they are applied."""
    waiting = list(sent)
    if order == "all":
        for _, pending in waiting:
            pending.wait()
    while waiting:
        arrived = (i for i, (_, pending) in enumerate(waiting) if order == "completed" and pending.done())
        part, pending = waiting.pop(next(arrived, 0))
        yield part, pending.wait()
