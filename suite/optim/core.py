"""Where the optimisers touch the reference implementations: an algorithm, and where its weights lie.

Updates are made where the weights lie, with one pass where whole vectors are written: twins of the ``update`` of
their classes, without the rate, which is one: same state, equal to the bit with the same solver. The solver must
overwrite points and memory (:class:`~suite.optim.solver.Grouped` with ``fused``). ``sums`` may be
:class:`~suite.optim.vector.Pieces`, where one worker's gradient is used at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from reference_impls import crossbow, isgd, local_sgd, matex_agd, rudra
from reference_impls.contract import Algorithm, GradientRef, Sent, Turn
from suite.communication.collectives import CompletedSum
from suite.optim import averaging
from suite.optim.solver import ONE
from suite.optim.vector import Loss, Pieces, Round

Update = Callable[..., Any]


def exchange(
    algorithm: matex_agd.DelayedSGD, state: matex_agd.DelayedSGDState, brought: Round
) -> matex_agd.DelayedSGDState:
    """Synchronous, layer-wise and delayed exchange with the solver that sees a late gradient as if it were new."""
    workers = algorithm.collective.workers
    due, *late = (*state.late, brought.sent)
    state = state._replace(late=tuple(late))
    for part, total in matex_agd.arrivals(algorithm.order, due):
        gradient = total.div_(workers) if workers > 1 else total
        algorithm.optimizer.step(state.memory[part], state.x[part], gradient, ONE, part)
    return state


def solve_subproblem(algorithm: isgd.ISGD, state: isgd.ISGDState, brought: Round) -> isgd.ISGDState:
    """ISGD as the loops of its paper, branching on the host, where the control chart is but a few numbers.

    With the queue that works, the anchor before the step and one rate, which are all that the optimiser has. The
    chart's numbers lie on the host, so that only the loss is read from a GPU.
    """
    x, collective, sums = state.x, algorithm.collective, brought.sums
    psi, chasing, limit = float(brought.losses[0]), state.chasing.item(), state.limit.item()
    if collective.workers > 1:
        said = torch.full((1, 1), psi, dtype=torch.float64, device=x.device)
        psi = collective.sum(said).item() / collective.workers
    if isinstance(sums, Pieces) and not chasing:
        gradient: Any = sums
    else:
        gradient = collective.sum(sums.joined() if isinstance(sums, Pieces) else sums)
        if collective.workers > 1:
            gradient = gradient / collective.workers
    iteration, chased = int(state.iteration), int(state.chased)
    if chasing:
        excess = torch.full((), psi - limit, dtype=gradient.dtype, device=x.device)
        x.lerp_(state.anchor, algorithm.zeta / x.numel()).addcmul_(gradient, algorithm.zeta * excess, value=-1)
        stays = chased + 1 < algorithm.stop and psi > limit
    else:
        limit = update_chart(algorithm, state, psi)
        stays = psi > limit and iteration > algorithm.batches and algorithm.stop > 0
        if stays:  # extra steps alone read it, and a copy of all weights takes half as long as a step
            state.anchor.copy_(x)
        algorithm.optimizer.step(state.memory, x, gradient, ONE)
    state.iteration.fill_(iteration + (not stays))
    state.chased.fill_(chased + 1 if chasing and stays else 0)
    state.chasing.fill_(stays)
    return state


def update_chart(algorithm: isgd.ISGD, state: isgd.ISGDState, psi: float) -> float:
    """The control chart after the loss psi of a new batch: ``ISGD.chart`` in place. Returns its limit."""
    n, iteration = algorithm.batches, int(state.iteration)
    place = iteration % n
    fresh = (state.fresh_mean.item(), state.fresh_m2.item()) if place else (0.0, 0.0)
    fresh_mean, fresh_m2 = isgd.append(*fresh, float(place), psi)
    if iteration < n or place == n - 1:
        mean, m2 = fresh_mean, fresh_m2
    else:
        mean, m2 = isgd.replace(state.mean.item(), state.m2.item(), n, state.queue[place].item(), psi)
    m2 = max(m2, 0.0)
    limit = mean + algorithm.margin * math.sqrt(m2 / n) if iteration >= n else math.inf
    state.queue[place] = psi
    named = {"mean": mean, "m2": m2, "fresh_mean": fresh_mean, "fresh_m2": fresh_m2, "limit": limit}
    for name, value in named.items():
        getattr(state, name).fill_(value)
    return limit


def serve(algorithm: rudra.Softsync, state: rudra.SoftsyncState, brought: Round) -> rudra.SoftsyncState:
    """Rudra's server, which overwrites the sums [p, d]; the learners keep older weights, so no history is kept."""
    turn, sums = brought.turn, brought.sums
    if isinstance(sums, Pieces):
        gradient: Any = sums
    else:
        reads, shares = rudra.gather(turn)
        if algorithm.per_gradient:
            for row, read in zip(sums, reads, strict=True):
                row.div_(max(1, turn.t - read))
        gradient = sums[0]
        for row in sums[1:]:
            gradient.add_(row)
        if sum(shares) > 1:
            gradient.div_(sum(shares))
    algorithm.optimizer.step(state.memory, state.x, gradient, ONE)
    return state._replace(versions=(state.x,))


def local_step(algorithm: Any, state: Any, turn: Turn, learner: int, gradient: Tensor | Pieces) -> None:
    """One learner's own step, in its row of ``state.replicas`` [m, d]."""
    algorithm.optimizer.step_learner(learner, state.memory, state.replicas, gradient)


def agree(algorithm: local_sgd.LocalSteps[Any], state: Any, turn: Turn) -> Any:
    """After the local steps of a round: the rule's own agreement where it has one, in the rows of the replicas."""
    if not algorithm.agrees(turn.t):
        return state
    after = algorithm.agree(state)
    return after._replace(replicas=state.replicas.copy_(after.replicas))


IN_PLACE: dict[type[Algorithm[Any]], Update] = {
    crossbow.SMA: averaging.on_devices,
    matex_agd.DelayedSGD: exchange,
    isgd.ISGD: solve_subproblem,
    rudra.Softsync: serve,
}


def by_learner(algorithm: Algorithm[Any]) -> tuple[Callable[..., None], Update] | None:
    """A learner's step from the gradient of its own batch, and the end of a round of them.

    None where an update takes the gradients of all learners at once.
    """
    if type(algorithm).update is local_sgd.LocalSteps.update:
        return local_step, agree
    if type(algorithm) is crossbow.SMA and algorithm.per_device(algorithm.collective.rows) <= 1:
        return averaging.step, averaging.agree
    return None


class Core:
    """An algorithm with its solver and collective.

    ``weights`` [d] given, they become the state's own, and updates happen in them (``IN_PLACE``) where
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
        """The same state with all workers' weights at x [d].

        With ``centre`` all else but the solver's memory begins anew there: a centre, slow weights, their velocity.
        """
        if centre:
            return self.own(self.algorithm.init(x)._replace(memory=state.memory))
        fields = {name: getattr(state, name) for name in ("x", "replicas") if hasattr(state, name)}
        return self.own(state._replace(**{name: x.expand_as(part).clone() for name, part in fields.items()}))

    def round(self, t: int, first: int) -> Turn:
        """Update t, with a new gradient of each worker held here, of which ``first`` is the first."""
        return Turn(t, tuple(GradientRef(first + row, t, t) for row in range(self.rows)))

    def step(self, state: Any, turn: Turn, learner: int, gradient: Tensor | Pieces) -> None:
        """One learner's step from its gradient [1, d], in the state; for algorithms that have it ``by_learner``."""
        assert self.by_learner is not None
        self.by_learner[0](self.algorithm, state, turn, learner, gradient)

    def update(
        self, state: Any, turn: Turn, losses: Sequence[Loss], sums: Tensor | Pieces | None, sent: Sent = ()
    ) -> Any:
        """The state after a turn, from its losses and sums of gradients [p, d]; None after steps ``by_learner``."""
        if sums is None:
            assert self.by_learner is not None
            return self.by_learner[1](self.algorithm, state, turn)
        if self.algorithm.sends and turn.entries and not sent:
            on_its_way: Any = CompletedSum(sums) if isinstance(sums, Pieces) else self.algorithm.send(sums)  # type: ignore[arg-type]
            sent = ((slice(0, sums.shape[-1]), on_its_way),)  # in one piece
        if self.in_place:
            return IN_PLACE[type(self.algorithm)](self.algorithm, state, Round(turn, losses, sums, sent))
        assert isinstance(sums, Tensor)  # pieces are for updates in place
        told = [torch.as_tensor(loss, dtype=torch.float64, device=sums.device) for loss in losses]
        found = torch.stack(told) if told else sums.new_zeros(0)  # [n]
        return self.algorithm.update(state, turn, found, sums, ONE.to(sums.dtype), sent)


def widened(before: Any, fresh: Any, old: int, d: int) -> Any:
    """A state over d parameters: what was known of the first ``old`` of them, and a beginner's of the rest."""
    if isinstance(fresh, Tensor) and fresh.dim() and fresh.shape[-1] == d and before.shape[-1] == old:
        return torch.cat([before, fresh[..., old:]], -1)
    if isinstance(fresh, tuple):
        parts = [widened(b, f, old, d) for b, f in zip(before, fresh, strict=True)]
        return type(fresh)(*parts) if hasattr(fresh, "_fields") else tuple(parts)
    return before
