"""The reference implementations' updates where the weights lie, with one pass where whole vectors are written.

Twins of the ``update`` of their classes: same arguments, same state, equal to the bit with the same solver. What the
algorithms decide is decided by the reference implementations; here stands only what happens to vectors [d]. The
solver must overwrite points and memory (:class:`~suite.optim.solver.Grouped` with ``fused``). ``sums`` may be
:class:`~suite.optim.vector.Pieces`, where one worker's gradient is used at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from reference_impls import crossbow, isgd, matex_agd, rudra
from reference_impls.contract import Algorithm, Sent, Turn
from suite.optim.vector import Pieces
from suite.training.optimizers import ALL, Stepped

Update = Callable[..., Any]


def average(
    algorithm: crossbow.SMA,
    state: crossbow.State,
    turn: Turn,
    losses: Tensor,
    sums: Tensor | Pieces,
    lr: Tensor,
    sent: Sent = (),
) -> crossbow.State:
    """Synchronous model averaging: the centre's two vectors change places."""
    w, v, z, z_prev = state
    step: Update = algorithm.optimizer.step
    if algorithm.tau == 0 or turn.t % algorithm.tau:
        step(v, w, sums, lr)
        return state
    c, to_centre = algorithm.corrections(w, z)
    step(v, w, sums, lr)
    w.sub_(c)
    total = algorithm.collective.sum(to_centre, each=algorithm.per_device(len(w)))
    torch.sub(z, z_prev, out=z_prev)
    torch.add(total.add_(z), z_prev, alpha=algorithm.momentum, out=z_prev)
    return crossbow.State(w, v, z_prev, z)


def exchange(
    algorithm: matex_agd.DelayedSGD,
    state: matex_agd.State,
    turn: Turn,
    losses: Tensor,
    sums: Tensor | Pieces,
    lr: Tensor,
    sent: Sent = (),
) -> matex_agd.State:
    """Synchronous, layer-wise and delayed exchange with the solver that sees a late gradient as if it were new."""
    workers = algorithm.collective.workers
    due, *late = (*state.late, sent)
    state = state._replace(late=tuple(late))
    for part, total in matex_agd.arrivals(algorithm.order, due):
        gradient = total.div_(workers) if workers > 1 else total
        algorithm.optimizer.step(state.memory[part], state.x[part], gradient, lr, part)
    return state


class _Noted:
    """A solver that does nothing but note at which rate it was asked to step."""

    rate: Tensor

    def init(self, points: Tensor) -> Tensor:
        return points

    def step(self, memory: Tensor, points: Tensor, grads: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        self.rate = lr
        return points, memory


def chase(
    algorithm: isgd.ISGD,
    state: isgd.State,
    turn: Turn,
    losses: Tensor,
    sums: Tensor | Pieces,
    lr: Tensor,
    sent: Sent = (),
) -> isgd.State:
    """ISGD as the loops of its paper, branching on the host; the control chart runs on one stand-in parameter."""
    noted, one = _Noted(), state.x[:1]
    small = state._replace(x=one, anchor=one, memory=one)
    x, anchor, memory = state.x, state.anchor, state.memory
    collective = algorithm.collective
    decided = replace(algorithm, optimizer=noted).update(small, turn, losses, torch.zeros_like(one)[None], lr)
    chasing = state.chasing.item()
    if isinstance(sums, Pieces) and not chasing:
        gradient: Any = sums
    else:
        gradient = collective.sum(sums.joined() if isinstance(sums, Pieces) else sums)
        if collective.workers > 1:
            gradient = gradient / collective.workers
    if chasing:
        psi = collective.sum(losses.double()[:, None])[0] / collective.workers
        excess = (psi - state.limit).to(gradient.dtype)
        x.lerp_(anchor, algorithm.zeta / x.numel()).addcmul_(gradient, algorithm.zeta * excess, value=-1)
    else:
        if decided.chasing.item() and algorithm.anchor == "before":
            anchor.copy_(x)
        algorithm.optimizer.step(memory, x, gradient, noted.rate)
        if decided.chasing.item() and algorithm.anchor == "after":
            anchor.copy_(x)
    return decided._replace(x=x, anchor=anchor, memory=memory)


IN_PLACE: dict[type[Algorithm[Any]], Update] = {
    crossbow.SMA: average,
    matex_agd.DelayedSGD: exchange,
    isgd.ISGD: chase,
    rudra.Softsync: rudra.Softsync.update,  # it makes no vectors but the solver's
}
