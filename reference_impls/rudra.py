"""Rudra: hardsync, n-softsync and async updates at a parameter server.

Suyog Gupta, Wei Zhang and Josh Milthorpe, "Model Accuracy and Runtime Tradeoff in Distributed Deep Learning",
2015 (arXiv 1509.04210), Equations 2-6 (the paper numbers no algorithm).

Update rules. Weights carry a timestamp i, the number of updates applied; a gradient carries that of the
weights it was computed on. From timestamp i to i + 1, with c gradients:

    theta(i+1) = theta(i) - alpha (1/c) sum_l Delta theta_l                                  (Eqs. 3-5)
    hardsync:    c = lambda, one gradient of each learner, all computed on theta(i)
    n-softsync:  c = floor(lambda / n), the next c to arrive, whoever sends them
    async:       n = lambda, so c = 1
    <sigma> = i - mean(timestamps of the c gradients)                         (Eq. 2, there from i - 1 to i)
    hardsync:    alpha = alpha_0 sqrt(lambda mu / B)                                         (section 3.2)
    n-softsync:  alpha = alpha_0 / <sigma> = alpha_0 / n                                     (Eq. 6)

    paper         | code                | shape | unit
    theta         | x                   | [d]   | parameters
    Delta theta_l | row of gradients    | [d]   | gradient, summed over learners with the same timestamp
    lambda        | workers             |       | learners
    n             | n                   |       | splitting parameter; 0 is hardsync
    c             | Server.collect      |       | gradients per update
    ts_i          | entry.read, turn.t  |       | updates
    sigma         | turn.t - entry.read |       | updates
    <sigma>       | average_staleness   |       | updates

c, alpha and the server's protocol are plain numbers: :mod:`reference_impls.rudra_protocol`. The model evaluated is
theta at the server.

Differs from the paper:
- The paper's server updates after "at least" c gradients. Gradients that come one by one make it exactly c; a
  tree of servers delivers several at once, and then the update takes all that have arrived and averages them.
- With n > 1 not dividing lambda, an update takes floor(lambda / n) gradients, so more than n updates happen
  while each learner sends one; kept. Mean staleness is then (lambda - 1) / c rather than the printed n.
- ``per_gradient=True`` is the finer rule that a footnote suggests and leaves open: each gradient is divided
  by max(1, its own staleness).
- Momentum and weight decay are those of the optimizer at the server, which may be AdaGrad (their ImageNet runs).
- Rudra-adv's tree of servers averages the same gradients, and Rudra-adv* delays the pull: both change when
  ``push`` and ``pull`` are called, not this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from reference_impls.contract import Algorithm, Points, Sent, Turn
from reference_impls.numbers import on_device
from reference_impls.rudra_protocol import gradients_per_update


def gather(turn: Turn) -> tuple[list[int], tuple[int, ...]]:
    """Distinct timestamps that the turn's gradients read, and how many gradients read each."""
    reads = [entry.read for entry in turn.entries]
    if reads != sorted(reads):
        raise ValueError(f"rudra: entries of update {turn.t} must stand in the order of their reads: {reads}")
    distinct = sorted(set(reads))
    return distinct, tuple(reads.count(read) for read in distinct)


class SoftsyncState(NamedTuple):
    x: Tensor  # [d] newest version
    memory: Tensor  # the optimizer's
    versions: tuple[Tensor, ...]  # [d] each; timestamp i stands at place i modulo history


@dataclass(frozen=True)
class Softsync(Algorithm[SoftsyncState]):
    """Hardsync, n-softsync and async by ``n``. Raises ValueError for values outside the ranges stated."""

    workers: int  # lambda >= 1, those of the collective
    n: int = 1  # 0 (hardsync) to lambda (async)
    history: int = 1  # versions of the weights kept, >= 1 + the largest staleness of the schedule
    per_gradient: bool = False

    keeps_memory = False  # but older weights stay for the gradients that will be computed on them

    def __post_init__(self) -> None:
        gradients_per_update(self.workers, self.n)
        if self.workers != self.collective.workers:
            raise ValueError(f"rudra: workers={self.workers}, but the collective has {self.collective.workers}")
        if self.history < 1:
            raise ValueError(f"rudra: history={self.history} must be at least 1, the current version")

    def init(self, x0: Tensor) -> SoftsyncState:
        return SoftsyncState(x0.clone(), self.optimizer.init(x0), (x0.clone(),) * self.history)

    def points(self, state: SoftsyncState, turn: Turn) -> Points:
        reads, shares = gather(turn)
        versions = [self.version(state, turn.t, read) for read in reads]
        parameters = torch.stack(versions) if len(versions) > 1 else versions[0][None]
        numbers = on_device([entry.number for entry in turn.entries], parameters.device)
        return Points(parameters, shares, numbers)

    def version(self, state: SoftsyncState, t: int, read: int) -> Tensor:
        """The weights [d] of a timestamp that update t uses a gradient of. Raises ValueError where they are gone."""
        if t - read >= self.history:
            raise ValueError(
                f"rudra: update {t} uses a gradient of staleness {t - read} but history={self.history} "
                f"versions of the weights are kept; set history to at least {t - read + 1}"
            )
        return state.versions[read % self.history]

    def update(
        self, state: SoftsyncState, turn: Turn, losses: Tensor, gradients: Tensor, lr: Tensor, sent: Sent = ()
    ) -> SoftsyncState:
        reads, shares = gather(turn)
        if self.per_gradient:
            staleness = [max(1, turn.t - read) for read in reads]
            gradients = gradients / on_device(staleness, gradients.device, gradients.dtype)[:, None]
        gradient = gradients.sum(0) / sum(shares) if sum(shares) > 1 else gradients[0]
        x, memory = self.optimizer.step(state.memory, state.x, gradient, lr)
        place = (turn.t + 1) % self.history
        return SoftsyncState(x, memory, (*state.versions[:place], x, *state.versions[place + 1 :]))

    def model(self, state: SoftsyncState) -> Tensor:
        return state.x
