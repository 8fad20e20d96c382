"""A quadratic whose batches differ, and a loop: all that a test of an algorithm needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from reference_impls.contract import Algorithm, GradientRef, Sent, Turn

D, EXAMPLES, BATCHES = 6, 96, 12
LR = torch.tensor(0.05, dtype=torch.float64)


def _examples() -> Tensor:
    draw = torch.Generator().manual_seed(0)
    spread = torch.linspace(0.2, 3, EXAMPLES, dtype=torch.float64)[:, None]
    return torch.randn(EXAMPLES, D, generator=draw, dtype=torch.float64) * spread


@dataclass(frozen=True)
class Quadratic:
    """f_i(x) = sum_j h_j (x_j - b_ij)^2 / 2 over examples b [N, d]; the spread of b grows with i."""

    b: Tensor = field(default_factory=_examples)
    h: Tensor = field(default_factory=lambda: torch.linspace(0.2, 1.5, D, dtype=torch.float64))

    def evaluate(self, x: Tensor, examples: Tensor) -> tuple[Tensor, Tensor]:
        """Mean loss [] and gradient [d] over the examples [b]."""
        apart, h = x - self.b[examples].to(x.dtype), self.h.to(x.dtype)
        return 0.5 * (h * apart**2).sum(-1).mean(), (h * apart).mean(0)


QUADRATIC = Quadratic()
TABLE = torch.randperm(EXAMPLES, generator=torch.Generator().manual_seed(1)).view(BATCHES, -1)
Batches = Callable[[int, int], Tensor]  # (worker, number) -> examples


def shares(workers: int) -> Batches:
    """Each worker's share of one joint batch; raises ValueError where it cannot be shared equally."""
    if TABLE.shape[1] % workers:
        raise ValueError(f"{workers} workers cannot share {TABLE.shape[1]} examples equally: drive(batches=streams)")
    return lambda worker, number: TABLE[number % BATCHES].view(workers, -1)[worker]


def streams(worker: int, number: int) -> Tensor:
    """Each worker's own stream of batches."""
    return TABLE[(5 * worker + number) % BATCHES]


def lockstep(workers: int, t: int) -> Turn:
    return Turn(t, tuple(GradientRef(worker, t, t) for worker in range(workers)))


def one(
    algorithm: Algorithm[Any],
    state: Any,
    turn: Turn,
    *,
    lr: Tensor = LR,
    batches: Batches = streams,
    buckets: tuple[slice, ...] = (),
    problem: Quadratic = QUADRATIC,
) -> tuple[Any, Tensor]:
    """The state after a turn, and the losses [n]."""
    points = algorithm.points(state, turn)
    losses, sums = [], []
    entries = iter(zip(turn.entries, points.batch.tolist(), strict=True))
    for point, share in zip(points.parameters, points.shares, strict=True):
        found = []
        for _ in range(share):
            entry, number = next(entries)
            found.append(problem.evaluate(point, batches(entry.worker, number)))
        losses += [loss for loss, _ in found]
        sums.append(torch.stack([gradient for _, gradient in found]).sum(0))
    stacked = torch.stack(losses), torch.stack(sums)
    return algorithm.update(state, turn, *stacked, lr, sent(algorithm, stacked[1], buckets)), stacked[0]


def sent(algorithm: Algorithm[Any], sums: Tensor, buckets: tuple[slice, ...]) -> Sent:
    """Sums [p, d] on their way, in backward order, for an algorithm that sends."""
    parts = reversed(buckets or (slice(0, sums.shape[1]),))
    return tuple((part, algorithm.send(sums[:, part])) for part in parts) if algorithm.sends else ()


def drive(
    algorithm: Algorithm[Any],
    turns: int,
    *,
    state: Any = None,
    start: int = 0,
    x0: Tensor | None = None,
    batches: Batches | None = None,
    **options: Any,
) -> Any:
    """The state after ``turns`` lockstep turns from x0 (ones) or from ``state``."""
    workers = algorithm.collective.workers
    if state is None:
        state = algorithm.init(torch.ones(D, dtype=torch.float64) if x0 is None else x0)
    for t in range(start, start + turns):
        state, _ = one(algorithm, state, lockstep(workers, t), batches=batches or shares(workers), **options)
    return state


def close(actual: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
