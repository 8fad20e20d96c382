"""Inconsistent stochastic gradient descent (ISGD).

Linnan Wang, Yi Yang, Martin Renqiang Min and Srimat Chakradhar, "Accelerating Deep Neural Network Training
with Inconsistent Stochastic Gradient Descent", 2016 (arXiv 1603.05544v2), Algorithms 1 and 2, Equations 8-12.

Update rules. Batches come in one fixed cycle of n. In iteration t, with batch d_t:

    psi_bar = mean of the last n losses                                                  (Eq. 8)
    sigma   = their standard deviation, divisor n                                        (Eq. 9)
    limit   = psi_bar + margin sigma                                                     (Eq. 10)
    w_t     = w_{t-1} - eta grad psi_{w_{t-1}}(d_t)                                      (Alg. 1, line 21)

and if psi > limit after the first epoch, at most ``stop`` times while the last loss stays above the limit:

    w <- w - zeta ( [psi_w(d_t) - limit] grad psi_w(d_t) + (w - w_{t-1}) / n_w )         (Eq. 12, Alg. 2)

The rate eta falls by the next factor, for good, once psi_bar passes the next threshold (section 3.3). With k
workers each has its share of d_t; losses and gradients are averaged over them (Alg. 1, lines 10-12).

    paper     | code             | shape | unit
    w         | x                | [d]   | parameters
    w_{t-1}   | anchor           | [d]   | parameters
    n         | batches          |       | batches in an epoch
    lossqueue | queue            | [n]   | loss, float64
    psi_bar   | mean             | []    | loss, float64
    sigma     | sqrt(m2 / n)     | []    | loss; m2 is the sum of squared deviations
    limit     | limit            | []    | loss
    iter      | iteration        | []    | iterations of Alg. 1 = number of the current batch
    iter      | chased           | []    | steps of Alg. 2 on the current batch
    stop      | stop             |       | steps
    zeta      | zeta             |       | learning rate of Alg. 2
    n_w       | x.numel()        |       | parameters

The model evaluated is w.

Differs from the paper:
- One gradient per turn: a step of Algorithm 2 is a turn of its own, so updates outnumber iterations. The
  loops, which :func:`literal` holds as printed, are unrolled into selections by the flag ``chasing``.
- As printed, the queue loses one entry per iteration from the second epoch on and gains none, so it is empty
  after two epochs. ``queue="working"`` lets the new loss take the oldest one's place. ``queue="literal"`` is
  the printed text: sigma over what is left of the first epoch, and from the emptying on no limit (plain SGD
  with the last psi_bar), since there is nothing left to dequeue.
- The paper gives three windows (Eq. 8-9 leave out the current loss, line 19 puts it into the mean, line 18
  leaves it out of sigma). The working reading has one, the last n losses, the current one among them.
- A deviation over a queue costs O(n); ours is O(1) by sliding Welford sums. So that rounding cannot pile up,
  the pair is built afresh beside the sliding one and replaces it at the end of each epoch.
- w_{t-1} can be the weights before or after the step on d_t; ``anchor`` says which. "before" is what the
  subscript says; with "after" the pull is zero in the first step of Algorithm 2.
- zeta is not printed; it has no default. Thresholds are tested from the second epoch on, when psi_bar first
  covers the data. Line 22 has iter > n, so iteration n has a limit that is not tested: kept.
- Momentum and weight decay are the optimizer's and act in Algorithm 1 only; Algorithm 2 has neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from reference_impls.contract import Algorithm, Optimizer, Points, Sent, Turn

Number = TypeVar("Number", float, Tensor)
ForwardBackward = Callable[[Tensor, int], tuple[Tensor, Tensor]]  # (w [d], t) -> (psi [], gradient [d])


class Iteration(NamedTuple):
    """What one pass through the loop of Algorithm 1 saw."""

    psi: float
    mean: float
    limit: float
    chased: int  # steps of Algorithm 2


def literal(
    w: Tensor,
    forward_backward: ForwardBackward,
    *,
    gradients: int,
    n: int,
    stop: int,
    zeta: float,
    margin: float,
    refill: bool,
    optimizer: Optimizer,
    eta: Tensor,
) -> tuple[Tensor, list[Iteration]]:
    """Algorithms 1 and 2 as printed: loops that branch, a queue that is a queue, STD computed over it.

    Returns weights [d] and what each iteration saw, once ``gradients`` gradients are spent. ``refill=False`` is the
    printed queue, which only empties; ``refill=True`` pushes each new loss.
    """
    lossqueue: deque[float] = deque()
    memory, mean, record = optimizer.init(w), 0.0, []
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
        w, memory = optimizer.step(memory, w, gradient, eta)
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


class ISGDState(NamedTuple):
    x: Tensor  # [d]
    anchor: Tensor  # [d]
    memory: Tensor  # the optimizer's
    queue: Tensor  # [n] float64, the loss of batch i of the last epoch at place i
    mean: Tensor  # [] float64
    m2: Tensor  # [] float64
    fresh_mean: Tensor  # [] float64, of the losses of the present epoch alone
    fresh_m2: Tensor  # [] float64
    limit: Tensor  # [] float64, infinite while there is none
    iteration: Tensor  # [] int64
    chased: Tensor  # [] int64
    chasing: Tensor  # [] bool
    level: Tensor  # [] int64, index into factors; never falls


def append(mean: Number, m2: Number, count: Number, new: Number) -> tuple[Number, Number]:
    """Mean and sum of squared deviations of ``count`` losses, and then of one more (Welford)."""
    moved = mean + (new - mean) / (count + 1)
    return moved, m2 + (new - mean) * (new - moved)


def replace(mean: Number, m2: Number, n: int, old: Number, new: Number) -> tuple[Number, Number]:
    """The same pair for n losses of which ``old`` gives way to ``new``."""
    moved = mean + (new - old) / n
    return moved, m2 + (new - old) * ((new - moved) + (old - mean))


@dataclass(frozen=True)
class ISGD(Algorithm[ISGDState]):
    """Both algorithms, one gradient a turn. ``stop=0`` is plain SGD.

    Raises ValueError for values outside the ranges stated.
    """

    batches: int  # n >= 2
    zeta: float  # >= 0
    stop: int = 5  # >= 0
    margin: float = 3.0  # >= 0, in standard deviations
    thresholds: tuple[float, ...] = ()  # strictly falling mean losses, one per change of the rate
    factors: tuple[float, ...] = (1.0,)  # of the learning rate: before the first threshold, after it, ...
    queue: Literal["working", "literal"] = "working"
    anchor: Literal["before", "after"] = "before"

    reads_turn = False

    def __post_init__(self) -> None:
        for name, least in (("batches", 2), ("zeta", 0), ("stop", 0), ("margin", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"isgd: {name}={getattr(self, name)} must be at least {least}")
        if len(self.factors) != len(self.thresholds) + 1:
            raise ValueError(
                f"isgd: {len(self.thresholds)} thresholds need {len(self.thresholds) + 1} factors, "
                f"one before each and one after the last; got {len(self.factors)}"
            )
        if any(a <= b for a, b in zip(self.thresholds, self.thresholds[1:], strict=False)):
            raise ValueError(f"isgd: thresholds={self.thresholds} must fall strictly, as the loss does")
        if self.queue not in ("working", "literal") or self.anchor not in ("before", "after"):
            raise ValueError(
                f"isgd: queue={self.queue!r} must be 'working' or 'literal' and anchor={self.anchor!r} "
                "'before' or 'after'"
            )

    def init(self, x0: Tensor) -> ISGDState:
        def zero(dtype: torch.dtype) -> Tensor:
            return torch.zeros((), dtype=dtype, device=x0.device)

        real, whole = torch.float64, torch.int64
        return ISGDState(
            x=x0.clone(),
            anchor=x0.clone(),
            memory=self.optimizer.init(x0),
            queue=torch.zeros(self.batches, dtype=real, device=x0.device),
            mean=zero(real),
            m2=zero(real),
            fresh_mean=zero(real),
            fresh_m2=zero(real),
            limit=torch.full((), torch.inf, dtype=real, device=x0.device),
            iteration=zero(whole),
            chased=zero(whole),
            chasing=zero(torch.bool),
            level=zero(whole),
        )

    def points(self, state: ISGDState, turn: Turn) -> Points:
        entries = len(turn.entries)
        return Points(state.x[None], (entries,), state.iteration.expand(entries))

    def update(
        self, state: ISGDState, turn: Turn, losses: Tensor, gradients: Tensor, lr: Tensor, sent: Sent = ()
    ) -> ISGDState:
        psi = self.collective.sum(losses.double()[:, None])[0] / self.collective.workers
        gradient = self.collective.sum(gradients) / self.collective.workers

        # Algorithm 1: an iteration on a new batch
        charted = self.chart(state, psi)
        level, rate = state.level, lr * self.factors[0]
        for passed, (threshold, factor) in enumerate(zip(self.thresholds, self.factors[1:], strict=True), start=1):
            below = (charted.mean < threshold) & (state.iteration >= self.batches)
            level = torch.where(below, level.clamp(min=passed), level)
            rate = torch.where(level >= passed, lr * factor, rate)
        stepped, memory = self.optimizer.step(state.memory, state.x, gradient, rate)
        enter = (psi > charted.limit) & (state.iteration > self.batches) & (self.stop > 0)

        # Algorithm 2: one more step on the same batch
        excess = (psi - state.limit).to(gradient.dtype)
        pulled = torch.lerp(state.x, state.anchor, self.zeta / state.x.numel())
        chased_x = torch.addcmul(pulled, gradient, self.zeta * excess, value=-1)
        stay = (state.chased + 1 < self.stop) & (psi > state.limit)

        def select(chase: Tensor, iterate: Tensor) -> Tensor:
            return torch.where(state.chasing, chase, iterate)

        chasing = select(stay, enter)
        return ISGDState(
            x=select(chased_x, stepped),
            anchor=select(state.anchor, state.x if self.anchor == "before" else stepped),
            memory=select(state.memory, memory),
            queue=select(state.queue, charted.queue),
            mean=select(state.mean, charted.mean),
            m2=select(state.m2, charted.m2),
            fresh_mean=select(state.fresh_mean, charted.fresh_mean),
            fresh_m2=select(state.fresh_m2, charted.fresh_m2),
            limit=select(state.limit, charted.limit),
            iteration=state.iteration + ~chasing,
            chased=torch.where(state.chasing & stay, state.chased + 1, 0),
            chasing=chasing,
            level=select(state.level, level),
        )

    def chart(self, state: ISGDState, psi: Tensor) -> ISGDState:
        """Queue, mean, deviation and limit after the loss psi [] of an iteration of Alg. 1 (lines 13-20)."""
        n, place = self.batches, state.iteration % self.batches
        first = state.iteration < n
        old = state.queue.gather(0, place[None])[0]
        begun = place > 0
        fresh_mean, fresh_m2 = append(
            torch.where(begun, state.fresh_mean, 0.0),
            torch.where(begun, state.fresh_m2, 0.0),
            place.double(),
            psi,
        )
        mean, m2 = replace(state.mean, state.m2, n, old, psi)
        whole = first | (place == n - 1)
        mean, m2 = torch.where(whole, fresh_mean, mean), torch.where(whole, fresh_m2, m2).clamp(min=0)
        pushed = state.queue.scatter(0, place[None], psi[None])
        queue, sigma, bounded = pushed, (m2 / n).sqrt(), ~first
        if self.queue == "literal":
            queue = torch.where(first, pushed, state.queue)
            left = torch.arange(n, device=queue.device) > place
            count = left.sum()
            left_mean = torch.where(left, queue, 0.0).sum() / count
            sigma = (torch.where(left, queue - left_mean, 0.0).square().sum() / count).sqrt()
            emptied = state.iteration >= 2 * n
            mean, m2 = torch.where(emptied, state.mean, mean), torch.where(emptied, state.m2, m2)
            bounded = bounded & (state.iteration < 2 * n - 1)
        limit = torch.where(bounded, mean + self.margin * sigma, torch.inf)
        return state._replace(queue=queue, mean=mean, m2=m2, fresh_mean=fresh_mean, fresh_m2=fresh_m2, limit=limit)

    def model(self, state: ISGDState) -> Tensor:
        return state.x

    def observe(self, before: ISGDState, after: ISGDState) -> Mapping[str, Tensor]:
        """What a turn was and where the chart stood after it."""
        return {
            "iteration": before.iteration,
            "chasing": before.chasing,
            "mean": after.mean,
            "limit": after.limit,
            "level": after.level,
        }

    def summary(self, state: ISGDState) -> Mapping[str, float]:
        """Iterations of Algorithm 1 behind the updates made; the rest were steps of Algorithm 2."""
        return {"iterations": int(state.iteration)}
