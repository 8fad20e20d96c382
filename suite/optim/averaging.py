"""Crossbow's averaging where the weights lie, in one pass by machine code or by torch's operations, to the same bits.

Torch's operations read and write the parameters some twenty times and take four times as long as a step of SGD. In
one pass (``averaging.cpp``) step and averaging take little longer than the step alone. It is used on the CPU, where a
compiler is there and what it made has been seen to round as torch does. More than a few threads are faster by sharing
torch's operations, and sums over processes or devices come between step and averaging.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from reference_impls import crossbow
from reference_impls.contract import Sent, Turn
from suite.communication.collectives import Local, in_process
from suite.optim.solver import Grouped
from suite.optim.vector import Loss, Pieces, Vector
from suite.training.machine_code import FLAGS, NUMBERS, NativeError, Source

SOURCE = Source(Path(__file__).with_suffix(".cpp"), flags=(*FLAGS, "-ffp-contract=off"))
LEARNERS = 4  # more rows torch does not add up one after the other
THREADS = 3  # one thread's pass takes less time than torch's operations shared by as many
State = crossbow.SMAState


def average(
    algorithm: crossbow.SMA,
    state: State,
    turn: Turn,
    losses: Sequence[Loss],
    sums: Tensor | Pieces,
    lr: Tensor,
    sent: Sent = (),
) -> State:
    """Synchronous model averaging: the centre's two vectors change places."""
    w, v, z, z_prev = state
    if algorithm.tau == 0 or turn.t % algorithm.tau:
        cast(Grouped, algorithm.optimizer).step(v, w, sums, lr)
        return state
    together = one_pass(z.dtype) if _fits(algorithm, state) else None
    (in_passes if together is None else together)(algorithm, state, sums, lr)
    return State(w, v, z_prev, z)


def in_passes(algorithm: crossbow.SMA, state: State, sums: Tensor | Pieces, lr: Tensor) -> None:
    """Write the new centre over the one before the last, by torch's operations on whole vectors."""
    w, v, z, z_prev = state
    c, to_centre = algorithm.corrections(w, z)
    cast(Grouped, algorithm.optimizer).step(v, w, sums, lr)
    w.sub_(c)
    total = algorithm.collective.sum(to_centre, each=algorithm.per_device(len(w)))
    torch.sub(z, z_prev, out=z_prev)
    torch.add(total.add_(z), z_prev, alpha=algorithm.momentum, out=z_prev)


class OnePass:
    """The same by machine code."""

    def __init__(self, path: Path, build: str):
        self._average = ctypes.CDLL(str(path)).average
        self._average.restype = None
        self._average.argtypes = [*[ctypes.c_long] * 4, *[ctypes.c_void_p] * 6, *[ctypes.c_double] * 5]

    def __call__(self, algorithm: crossbow.SMA, state: State, sums: Tensor | Pieces, lr: Tensor) -> None:
        solver, rows = cast(Grouped, algorithm.optimizer), state.replicas.shape[0]
        vector, where = solver.vector, [vectors.data_ptr() for vectors in state]
        alpha = algorithm.alpha or 1 / algorithm.collective.workers
        for own, members, group in zip(vector.groups, vector.members, solver.groups, strict=True):
            segments = vector.segments[members]
            if not segments:
                continue
            gradients = _addresses(sums, members, segments, rows)
            self._average(
                rows,
                vector.d,
                own.start,
                len(segments),
                (ctypes.c_long * len(segments))(*[segment.stop - segment.start for segment in segments]),
                (ctypes.c_void_p * len(gradients))(*gradients),
                *where,
                solver.rate(group, lr),
                group["momentum"],
                group["weight_decay"],
                alpha,
                algorithm.momentum,
            )


def _addresses(sums: Tensor | Pieces, members: slice, segments: list[slice], rows: int) -> list[int]:
    """Where each learner's gradient of each tensor begins, row by row."""
    if isinstance(sums, Pieces):
        return [grad.data_ptr() for grad in sums.grads[members]]
    first, item = sums.data_ptr(), sums.element_size()
    return [first + (row * sums.shape[1] + part.start) * item for row in range(rows) for part in segments]


def _fits(algorithm: crossbow.SMA, state: State) -> bool:
    """Whether all learners are here, one behind the other, for one thread."""
    w, _, z, _ = state
    return (
        isinstance(algorithm.optimizer, Grouped)
        and z.device.type == "cpu"
        and z.dtype in NUMBERS
        and z.numel() > 1  # else torch adds up a column as a row, in another order
        and torch.get_num_threads() <= THREADS
        and isinstance(algorithm.collective, Local)
        and w.shape[0] <= LEARNERS
        and algorithm.per_device(w.shape[0]) == 1
    )


@cache
def one_pass(numbers: torch.dtype) -> OnePass | None:
    """None without a compiler, and where what it made does not round as torch's operations do here."""
    try:
        library = SOURCE.library({"REAL": NUMBERS[numbers]}, OnePass)
    except NativeError:
        return None
    return library if all(_agrees(library, numbers, learners) for learners in (1, LEARNERS)) else None


def _agrees(library: OnePass, numbers: torch.dtype, learners: int) -> bool:
    """Whether three updates of random tensors, of sizes that fill vectors and that do not, end in the same bits."""
    draw = torch.Generator().manual_seed(0)
    random = lambda *shape: torch.randn(*shape, generator=draw, dtype=numbers)
    groups: list[dict[str, Any]] = [
        {"params": [random(1500), random(13)], "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-3},
        {"params": [random(64), random(7)], "lr": 0.05, "momentum": 0.0, "weight_decay": 0.0},
    ]
    vector = Vector([group["params"] for group in groups])
    algorithm = crossbow.SMA(Grouped(vector, groups, fused=True), in_process(learners), alpha=0.3)
    begun = State(random(learners, vector.d), random(learners, vector.d), random(vector.d), random(vector.d))
    gradients, one = random(learners, vector.d), torch.ones((), dtype=numbers)
    ends = []
    for way in (library, in_passes):
        state = State(*[part.clone() for part in begun])
        for _ in range(3):
            way(algorithm, state, gradients, one)
            state = state._replace(centre=state.previous, previous=state.centre)
        ends.append(state)
    return all(torch.equal(a, b) for a, b in zip(*ends, strict=True))
