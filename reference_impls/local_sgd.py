"""The averaging family of local steps: Local SGD, post-local SGD and DiLoCo.

Sebastian U. Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019 (arXiv 1805.09767), Algorithm 1.
Tao Lin, Sebastian U. Stich, Kumar Kshitij Patel and Martin Jaggi, "Don't Use Large Mini-Batches, Use Local SGD",
ICLR 2020 (arXiv 1808.07217).
Arthur Douillard, Qixuan Feng, Andrei A. Rusu et al., "DiLoCo: Distributed Low-Communication Training of Language
Models", 2023 (arXiv 2311.08105), Algorithm 1.

Update rules, for worker k of K with its own replica, batch and optimizer. Every worker makes a local step:

    w_k <- w_k - eta g_k(w_k)

After the last of H local steps the workers agree. In Local SGD they take the mean:

    w_k <- (1/K) sum_j w_j

Post-local SGD does the same with H = 1 up to a switch, and with its H from there on. DiLoCo treats the way from the
common model theta as one gradient of an outer Nesterov step:

    Delta <- theta - (1/K) sum_j w_j
    v     <- mu v + Delta
    theta <- theta - alpha (Delta + mu v)
    w_k   <- theta

    paper  | code             | shape  | unit
    w_k    | replicas         | [m, d] | parameters of the m workers held here
    theta  | common           | [d]    | parameters, the model of the last agreement (DiLoCo)
    v      | velocity         | [d]    | parameters, of the outer step (DiLoCo)
    Delta  | delta            | [d]    | parameters
    K      | workers          |        | workers in all
    H      | h                |        | local steps between two agreements
    t'     | switch           |        | turns before post-local SGD takes its H
    eta    | lr               | []     | learning rate of the local steps
    alpha  | alpha            |        | learning rate of the outer step
    mu     | momentum         |        | of the outer step

The model evaluated is the mean of the replicas (Local SGD, post-local SGD) or theta (DiLoCo).

Special cases: H = 1 is synchronous SGD, to rounding, as long as the optimizer is linear in the gradients (SGD with
momentum and coupled decay is, Adam is not). alpha = 1 and mu = 0 make DiLoCo Local SGD. alpha = 1, mu = 0 and K = 1
are the optimizer alone.

Differs from the papers:
- Agreements follow the turns H - 1, 2 H - 1, ...: after H finished local steps, and never after the first step alone.
- Stich evaluates a weighted mean of all iterates and has no momentum. Here the mean of the replicas is evaluated, as
  in practice, and the optimizer may have momentum. Its memory stays with its replica and is never averaged.
- Lin et al. switch at the first drop of the learning rate; ``switch`` is any turn.
- DiLoCo's workers read different shards and use AdamW. Order and optimizer are given from outside.
- Counting a partial round at the end of a run is left to who ends it: DiLoCo's model is the last agreement.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from torch import Tensor

from reference_impls.contract import Algorithm, Points, Sent, Turn
from reference_impls.numbers import on_device


class LocalSGDState(NamedTuple):
    replicas: Tensor  # [m, d]
    memory: Tensor  # the optimizer's, a row per replica


class OuterState(NamedTuple):
    replicas: Tensor  # [m, d]
    memory: Tensor  # the optimizer's, a row per replica
    common: Tensor  # [d]
    velocity: Tensor  # [d]


Replicas = TypeVar("Replicas", LocalSGDState, OuterState)


@dataclass(frozen=True)
class LocalSteps(Algorithm[Replicas], Generic[Replicas]):
    """Local steps of every worker, and when they agree; subclasses say how. Raises ValueError for H < 1."""

    h: int = 8  # >= 1 local steps between two agreements

    keeps_parameters = keeps_memory = False
    replicated = True

    def __post_init__(self) -> None:
        if self.h < 1:
            raise ValueError(f"local_sgd: h={self.h} must be at least 1 local step between two agreements")

    def agrees(self, t: int) -> bool:
        """Whether the workers agree at the end of turn t."""
        return (t + 1) % self.h == 0

    def points(self, state: Replicas, turn: Turn) -> Points:
        numbers = on_device([entry.number for entry in turn.entries], state.replicas.device)
        return Points(state.replicas, (1,) * len(turn.entries), numbers)

    @abstractmethod
    def agree(self, state: Replicas) -> Replicas:
        """The state after an agreement, from that after the round's last local step."""

    def update(
        self, state: Replicas, turn: Turn, losses: Tensor, gradients: Tensor, lr: Tensor, sent: Sent = ()
    ) -> Replicas:
        w, memory = self.optimizer.step(state.memory, state.replicas, gradients, lr)
        state = state._replace(replicas=w, memory=memory)
        return self.agree(state) if self.agrees(turn.t) else state

    def mean(self, replicas: Tensor) -> Tensor:
        """Mean of all workers' replicas: [m, d] -> [d]."""
        return self.collective.sum(replicas) / self.collective.workers


@dataclass(frozen=True)
class LocalSGD(LocalSteps[LocalSGDState]):
    """Local SGD (Stich, Algorithm 1): every H local steps all replicas become their mean."""

    def init(self, x0: Tensor) -> LocalSGDState:
        replicas = x0.expand(self.collective.rows, -1).clone()
        return LocalSGDState(replicas, self.optimizer.init(replicas))

    def agree(self, state: LocalSGDState) -> LocalSGDState:
        return state._replace(replicas=self.mean(state.replicas).expand_as(state.replicas).clone())

    def model(self, state: LocalSGDState) -> Tensor:
        return self.mean(state.replicas)


@dataclass(frozen=True)
class PostLocalSGD(LocalSGD):
    """Post-local SGD (Lin et al.): an agreement after every step before ``switch``, after every H from there on."""

    switch: int = 0  # >= 0 turns

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.switch < 0:
            raise ValueError(f"local_sgd: switch={self.switch} must be at least 0 turns")

    def agrees(self, t: int) -> bool:
        return t < self.switch or (t - self.switch + 1) % self.h == 0


@dataclass(frozen=True)
class DiLoCo(LocalSteps[OuterState]):
    """DiLoCo (Douillard et al., Algorithm 1): every H local steps an outer Nesterov step along the mean of the ways.

    Raises ValueError for values outside the ranges stated.
    """

    alpha: float = 0.7  # > 0
    momentum: float = 0.9  # in [0, 1), of the outer step

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.alpha > 0 or not 0 <= self.momentum < 1:
            raise ValueError(
                f"local_sgd: of the outer step alpha={self.alpha}, its rate, must be above 0, and "
                f"momentum={self.momentum} must lie in [0, 1)"
            )

    def init(self, x0: Tensor) -> OuterState:
        replicas = x0.expand(self.collective.rows, -1).clone()
        return OuterState(replicas, self.optimizer.init(replicas), x0.clone(), x0.new_zeros(x0.shape))

    def agree(self, state: OuterState) -> OuterState:
        w, memory, common, velocity = state
        delta = common - self.mean(w)
        velocity = self.momentum * velocity + delta
        common = common - self.alpha * (delta + self.momentum * velocity)
        return OuterState(common.expand_as(w).clone(), memory, common, velocity)

    def model(self, state: OuterState) -> Tensor:
        return state.common
