"""The reference implementations' updates where the weights lie, with one pass where whole vectors are written.

Twins of the ``tell`` of their modules: same arguments, same state, equal to the bit with the same solver. What the
algorithms decide is decided by the reference implementations; here stands only what happens to vectors [d]. The
solver must overwrite points and memory (:class:`~suite.optim.solver.Grouped` with ``fused``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from reference_impls import crossbow, isgd, matex_agd, rudra
from reference_impls.contract import Collective, Descent, Told, Turn
from suite.descent import ALL, Stepped

Tell = Callable[..., Any]


def average(
    config: crossbow.Config,
    state: crossbow.State,
    turn: Turn,
    told: Told,
    *,
    collective: Collective,
    descent: Descent,
    lr: Tensor,
) -> crossbow.State:
    """Synchronous model averaging: the centre's two vectors change places."""
    w, v, z, z_prev = state
    if config.tau == 0 or turn.t % config.tau:
        descent.step(v, w, told.sums, lr)
        return state
    c, to_centre = crossbow.corrections(config, w, z, collective.workers)
    descent.step(v, w, told.sums, lr)
    w.sub_(c)
    total = collective.sum(to_centre, each=crossbow.per_device(config, len(w)))
    torch.sub(z, z_prev, out=z_prev)
    torch.add(total.add_(z), z_prev, alpha=config.momentum, out=z_prev)
    return crossbow.State(w, v, z_prev, z)


def exchange(
    config: matex_agd.Config,
    state: matex_agd.State,
    turn: Turn,
    told: Told,
    *,
    collective: Collective,
    descent: Descent,
    lr: Tensor,
) -> matex_agd.State:
    """Synchronous, layer-wise and delayed exchange with the solver that sees a late gradient as if it were new."""
    if config.delay == 0 and not told.sent:
        totals = [(ALL, collective.sum(told.sums))]
    else:
        sent = told.sent
        if turn.entries and not sent:
            sent = ((slice(0, state.x.numel()), matex_agd.send(config, told.sums, collective)),)
        due, *late = (*state.late, sent)
        state = state._replace(late=tuple(late))
        totals = list(matex_agd.arrivals(config.order, due))
    for part, total in totals:
        gradient = total.div_(collective.workers) if collective.workers > 1 else total
        descent.step(state.memory[part], state.x[part], gradient, lr, part)
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
    config: isgd.Config,
    state: isgd.State,
    turn: Turn,
    told: Told,
    *,
    collective: Collective,
    descent: Descent,
    lr: Tensor,
) -> isgd.State:
    """ISGD as the loops of its paper, branching on the host; the control chart runs on one stand-in parameter."""
    noted, one = _Noted(), state.x[:1]
    small = state._replace(x=one, anchor=one, memory=one)
    x, anchor, memory = state.x, state.anchor, state.memory
    decided = isgd.tell(
        config, small, turn, told._replace(sums=told.sums[:, :1]), collective=collective, descent=noted, lr=lr
    )
    gradient = collective.sum(told.sums)
    if collective.workers > 1:
        gradient = gradient / collective.workers
    if state.chasing.item():
        psi = collective.sum(told.losses.double()[:, None])[0] / collective.workers
        excess = (psi - state.limit).to(gradient.dtype)
        x.lerp_(anchor, config.zeta / x.numel()).addcmul_(gradient, config.zeta * excess, value=-1)
    else:
        if decided.chasing.item() and config.anchor == "before":
            anchor.copy_(x)
        descent.step(memory, x, gradient, noted.rate)
        if decided.chasing.item() and config.anchor == "after":
            anchor.copy_(x)
    return decided._replace(x=x, anchor=anchor, memory=memory)


IN_PLACE: dict[Any, Tell] = {
    crossbow: average,
    matex_agd: exchange,
    isgd: chase,
    rudra: rudra.tell,  # it makes no vectors but the solver's
}
