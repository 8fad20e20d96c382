"""A quadratic whose batches differ, and a loop: all that a test of an algorithm needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from reference_impls.contract import Entry, Told, Turn
from suite.communication.collectives import Local

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
    """Each worker's share of one joint batch."""
    return lambda worker, number: TABLE[number % BATCHES].view(workers, -1)[worker]


def streams(worker: int, number: int) -> Tensor:
    """Each worker's own stream of batches."""
    return TABLE[(5 * worker + number) % BATCHES]


def lockstep(workers: int, t: int) -> Turn:
    return Turn(t, tuple(Entry(worker, t, t) for worker in range(workers)))


def one(
    algorithm: Any,
    config: Any,
    state: Any,
    turn: Turn,
    *,
    collective: Any,
    descent: Any,
    lr: Tensor = LR,
    batches: Batches = streams,
    segments: tuple[slice, ...] = (),
    problem: Quadratic = QUADRATIC,
) -> tuple[Any, Tensor]:
    """The state after a turn, and the losses [n]."""
    ask = algorithm.ask(config, state, turn)
    losses, sums = [], []
    entries = iter(zip(turn.entries, ask.batch.tolist(), strict=True))
    for point, share in zip(ask.points, ask.shares, strict=True):
        found = []
        for _ in range(share):
            entry, number = next(entries)
            found.append(problem.evaluate(point, batches(entry.worker, number)))
        losses += [loss for loss, _ in found]
        sums.append(torch.stack([gradient for _, gradient in found]).sum(0))
    told = Told(torch.stack(losses), torch.stack(sums))
    if hasattr(algorithm, "send"):
        parts = reversed(segments or (slice(0, len(sums[0])),))
        told = told._replace(
            sent=tuple((part, algorithm.send(config, told.sums[:, part], collective)) for part in parts)
        )
    told_state = algorithm.tell(config, state, turn, told, collective=collective, descent=descent, lr=lr)
    return told_state, told.losses


def drive(
    algorithm: Any,
    config: Any,
    workers: int,
    turns: int,
    *,
    descent: Any,
    state: Any = None,
    start: int = 0,
    x0: Tensor | None = None,
    batches: Batches | None = None,
    **options: Any,
) -> Any:
    """The state after ``turns`` lockstep turns from x0 (ones) or from ``state``."""
    if state is None:
        x0 = torch.ones(D, dtype=torch.float64) if x0 is None else x0
        state = algorithm.init(config, x0, workers, workers, descent)
    for t in range(start, start + turns):
        state, _ = one(
            algorithm,
            config,
            state,
            lockstep(workers, t),
            collective=Local(workers),
            descent=descent,
            batches=batches or shares(workers),
            **options,
        )
    return state


def close(actual: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
