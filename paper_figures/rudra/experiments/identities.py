"""The experiment ``rudra/identities``: what the update rules must equal, on a quadratic in float64.

Every number is the largest absolute difference between two computations that the paper says are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import torch
from torch import Tensor

from reference_impls.contract import GradientRef, Turn
from reference_impls.rudra import Softsync
from reference_impls.rudra_protocol import Server
from suite.communication.collectives import Local
from suite.experiment import Context
from suite.parameter_server.protocol import GammaDurations, play
from suite.parameter_server.topology import server_tree, weighted_mean
from suite.runs.run import Outcome
from suite.spec import RunSpec
from suite.training.optimizers import CaffeSGD
from suite.training.problem import QuadraticProblem

EXAMPLES, DIMENSIONS, RATE = 240, 12, 0.05


def problem(seed: int) -> QuadraticProblem:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(EXAMPLES, DIMENSIONS, generator=generator, dtype=torch.float64)
    return QuadraticProblem(rows, torch.linspace(0.5, 2.0, DIMENSIONS, dtype=torch.float64))


def gradient(made: QuadraticProblem, x: Tensor, examples: Tensor) -> Tensor:
    """Mean over the examples of h (x - b_i)."""
    return (made.curvature * (x - made.rows[examples])).mean(0)


def batch(worker: int, number: int, size: int) -> Tensor:
    """Examples of a learner's mini-batch: consecutive, so that batches of one round are disjoint."""
    return torch.arange(size) + (worker + 31 * number) * size


def follow(
    made: QuadraticProblem, turns: Iterable[Turn], learners: int, n: int, size: int, momentum: float
) -> Tensor:
    """Weights after the turns, computed by the reference implementation."""
    algorithm = Softsync(CaffeSGD(momentum), Local(learners), learners, n, history=4 * learners + 4)
    state = algorithm.init(torch.zeros(DIMENSIONS, dtype=torch.float64))
    rate = torch.tensor(RATE, dtype=torch.float64)
    for turn in turns:
        points = algorithm.points(state, turn)
        parts, entries = list[Tensor](), iter(turn.entries)
        for point, share in zip(points.parameters, points.shares, strict=True):
            own = islice(entries, share)
            grads = [gradient(made, point, batch(e.worker, e.number, size) % EXAMPLES) for e in own]
            parts.append(torch.stack(grads).sum(0))
        losses = torch.zeros(len(turn.entries), dtype=torch.float64)
        state = algorithm.update(state, turn, losses, torch.stack(parts), rate)
    return algorithm.model(state)


def plain(made: QuadraticProblem, batches: Sequence[Tensor], momentum: float) -> Tensor:
    """Single-learner SGD over the batches."""
    x = torch.zeros(DIMENSIONS, dtype=torch.float64)
    optimizer = CaffeSGD(momentum)
    memory = optimizer.init(x)
    for examples in batches:
        x, memory = optimizer.step(memory, x, gradient(made, x, examples), torch.tensor(RATE, dtype=torch.float64))
    return x


def schedule(learners: int, n: int, updates: int, seed: int) -> list[Turn]:
    durations = GammaDurations(1.0, 0.05, seed)
    return [turn for _, turn in islice(play(Server(learners, n), learners, durations), updates)]


def apart(a: Tensor, b: Tensor) -> float:
    return (a - b).abs().max().item()


def run(spec: RunSpec, context: Context) -> Outcome:
    """All identities. Settings: ``learners``, ``batch``, ``updates``, ``momentum``."""
    s = spec.settings
    learners, size, updates, momentum = s["learners"], s["batch"], s["updates"], s["momentum"]
    made = problem(spec.seed)
    trajectories = whole_runs(made, spec.seed, learners, size, updates, momentum)
    return Outcome("finished", trajectories | first_updates(made, learners, size) | means(made, learners, size))


def whole_runs(
    made: QuadraticProblem, seed: int, learners: int, size: int, updates: int, momentum: float
) -> dict[str, float]:
    """Protocols that are SGD with one learner, with one large batch, or asynchronous SGD."""
    hard = schedule(learners, 0, updates, seed)
    union = [torch.cat([batch(w, t, size) for w in range(learners)]) % EXAMPLES for t in range(updates)]
    alone = [batch(0, t, size) % EXAMPLES for t in range(updates)]
    hardsync, softsync = (follow(made, schedule(1, n, updates, seed), 1, n, size, momentum) for n in (0, 1))
    soft = schedule(learners, learners, updates * learners, seed)
    as_async = asynchronous(soft, made, learners, size, momentum)
    everything = torch.arange(EXAMPLES)
    return {
        "hardsync_large_batch": apart(follow(made, hard, learners, 0, size, momentum), plain(made, union, momentum)),
        "one_learner_hardsync": apart(hardsync, plain(made, alone, momentum)),
        "one_learner_softsync": apart(softsync, hardsync),
        "async": apart(follow(made, soft, learners, learners, size, momentum), as_async),
        "full_batch": apart(plain(made, [everything], 0.0), RATE * made.curvature * made.rows.mean(0)),
    }


def first_updates(made: QuadraticProblem, learners: int, size: int) -> dict[str, float]:
    """One update from zero: by the mean of all gradients, and by one learner's alone."""
    zero = torch.zeros(DIMENSIONS, dtype=torch.float64)
    mean = sum((gradient(made, zero, batch(w, 0, size)) for w in range(learners)), zero) / learners
    all_of_them = Turn(0, tuple(GradientRef(w, 0, 0) for w in range(learners)))
    one = Turn(0, (GradientRef(3, 0, 0),))
    return {
        "hardsync_mean": apart(follow(made, [all_of_them], learners, 0, size, 0.0), -RATE * mean),
        "async_single": apart(
            follow(made, [one], learners, learners, size, 0.0), -RATE * gradient(made, zero, batch(3, 0, size))
        ),
    }


def means(made: QuadraticProblem, learners: int, size: int) -> dict[str, float]:
    """The mean of the learners' gradients against that of their joint batch, and as trees of servers form it."""
    x = torch.ones(DIMENSIONS, dtype=torch.float64)
    gradients = [gradient(made, x, batch(w, 0, size)) for w in range(learners)]
    flat = sum(gradients, torch.zeros_like(x)) / learners
    equal, unequal = server_tree(learners, learners // 4, 2), server_tree(learners, 5, 3)
    return {
        "two_level_mean": apart(flat, gradient(made, x, torch.cat([batch(w, 0, size) for w in range(learners)]))),
        "tree": apart(weighted_mean(equal, gradients), flat),
        "unequal_tree": apart(weighted_mean(unequal, gradients), flat),
        "tree_levels": depth(equal),
    }


def asynchronous(turns: Sequence[Turn], made: QuadraticProblem, learners: int, size: int, momentum: float) -> Tensor:
    """Eq. 4 written out: one gradient, on the weights its learner read, moves the weights at once."""
    x = torch.zeros(DIMENSIONS, dtype=torch.float64)
    velocity = torch.zeros_like(x)
    held = [x] * learners
    pushed = [0] * learners
    for turn in turns:
        (entry,) = turn.entries
        worker = entry.worker
        examples = batch(worker, pushed[worker], size) % EXAMPLES
        velocity = momentum * velocity + RATE * gradient(made, held[worker], examples)
        x = x - velocity
        held[worker] = x
        pushed[worker] += 1
    return x


def depth(node: object) -> int:
    """Levels of servers."""
    children = getattr(node, "children", [])
    return 1 + max((depth(child) for child in children), default=0)
