"""Crossbow's averaging where the weights lie, learner by learner, by machine code or by torch's operations.

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
from reference_impls.contract import Turn
from suite.communication.collectives import Local, in_process
from suite.optim.solver import ONE, Grouped
from suite.optim.vector import Pieces, Round, Vector
from suite.training.machine_code import FLAGS, NUMBERS, NativeError, Source

SOURCE = Source(Path(__file__).with_suffix(".cpp"), flags=(*FLAGS, "-ffp-contract=off"))
LEARNERS = 4  # more rows torch does not add up one after the other
CACHE = 32 << 20  # bytes; vectors beyond it are not found in the cache again
THREADS = 3  # one thread's pass takes less time than torch's operations shared by as many
State = crossbow.SMAState


def step(algorithm: crossbow.SMA, state: State, turn: Turn, learner: int, gradient: Tensor | Pieces) -> None:
    """A learner's step and correction; the first in a round also writes the new centre over the previous one."""
    if not _synchronises(algorithm, turn):
        cast(Grouped, algorithm.optimizer).step_learner(learner, state.memory, state.replicas, gradient)
        return
    together = one_pass(state.centre.dtype) if _fits(algorithm, state) else None
    (in_passes if together is None else together)(algorithm, state, learner, gradient)


def agree(algorithm: crossbow.SMA, state: State, turn: Turn) -> State:
    """The state after the round's last learner: the centre's two vectors change places."""
    w, v, z, z_prev = state
    return State(w, v, z_prev, z) if _synchronises(algorithm, turn) else state


def on_devices(algorithm: crossbow.SMA, state: State, brought: Round) -> State:
    """A round of learners with reference models, whose corrections need the weights of all before the first step."""
    w, v, z, _ = state
    turn, sums = brought.turn, brought.sums
    solver = cast(Grouped, algorithm.optimizer)
    if not _synchronises(algorithm, turn):
        solver.step(v, w, sums, ONE)
        return state
    c, to_centre = algorithm.corrections(w, z)
    solver.step(v, w, sums, ONE)
    w.sub_(c)
    _move_centre(algorithm, state, to_centre)
    return agree(algorithm, state, turn)


def _synchronises(algorithm: crossbow.SMA, turn: Turn) -> bool:
    return algorithm.tau > 0 and turn.t % algorithm.tau == 0


def _move_centre(algorithm: crossbow.SMA, state: State, to_centre: Tensor) -> None:
    """Write the new centre over the previous one, from corrections [r, d]."""
    _, _, z, z_prev = state
    total = algorithm.collective.sum(to_centre, each=algorithm.per_device(len(state.replicas)))
    torch.sub(z, z_prev, out=z_prev)
    torch.add(total.add_(z), z_prev, alpha=algorithm.momentum, out=z_prev)


def in_passes(algorithm: crossbow.SMA, state: State, learner: int, gradient: Tensor | Pieces) -> None:
    """One learner's step and correction by torch's operations on whole vectors."""
    w, v, z, _ = state
    if learner == 0:
        _move_centre(algorithm, state, algorithm.corrections(w, z)[1])
    correction = (w[learner] - z).mul_(_alpha(algorithm))
    cast(Grouped, algorithm.optimizer).step_learner(learner, v, w, gradient)
    w[learner].sub_(correction)


def _alpha(algorithm: crossbow.SMA) -> float:
    return algorithm.alpha or 1 / algorithm.collective.workers


class OnePass:
    """The same by machine code."""

    def __init__(self, path: Path, build: str):
        library = ctypes.CDLL(str(path))
        self._step, self._copy = library.step, library.copy
        self._step.restype = self._copy.restype = None
        self._copy.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self._step.argtypes = [*[ctypes.c_long] * 4, *[ctypes.c_void_p] * 6, *[ctypes.c_double] * 5]

    def __call__(self, algorithm: crossbow.SMA, state: State, learner: int, gradient: Tensor | Pieces) -> None:
        solver, (w, v, z, z_prev) = cast(Grouped, algorithm.optimizer), state
        vector, where = solver.vector, [vectors.data_ptr() for vectors in (w[learner], v[learner], z, z_prev)]
        for own, members, group in zip(vector.groups, vector.members, solver.groups, strict=True):
            segments = vector.segments[members]
            if not segments:
                continue
            gradients = _addresses(gradient, members, segments)
            self._step(
                0 if learner else len(w),
                vector.d,
                own.start,
                len(segments),
                (ctypes.c_long * len(segments))(*[segment.stop - segment.start for segment in segments]),
                (ctypes.c_void_p * len(gradients))(*gradients),
                *where,
                solver.rate(group),
                group["momentum"],
                group["weight_decay"],
                _alpha(algorithm),
                algorithm.momentum,
            )

    def copy(self, to: Tensor, point: Tensor) -> None:
        """Overwrite a vector [d] past the cache."""
        self._copy(to.nbytes, to.data_ptr(), point.data_ptr())


def copy(to: Tensor, point: Tensor) -> None:
    """Overwrite a vector [d], past the cache where it is larger than that."""
    library = one_pass(to.dtype) if to.nbytes >= CACHE and _is_for_one_thread(to) else None
    if library is None or to.data_ptr() % 16:
        to.copy_(point)
    else:
        library.copy(to, point)


def _addresses(gradient: Tensor | Pieces, members: slice, segments: Sequence[slice]) -> list[int]:
    """Where each tensor's gradient begins."""
    if isinstance(gradient, Pieces):
        return [grad.data_ptr() for grad in gradient.grads[members]]
    return [gradient.data_ptr() + part.start * gradient.element_size() for part in segments]


def _fits(algorithm: crossbow.SMA, state: State) -> bool:
    """Whether all learners are here, and one thread steps them."""
    w, _, z, _ = state
    return (
        isinstance(algorithm.optimizer, Grouped)
        and _is_for_one_thread(z)
        and z.numel() > 1  # else torch adds up a column as a row, in another order
        and isinstance(algorithm.collective, Local)
        and w.shape[0] <= LEARNERS
    )


def _is_for_one_thread(vector: Tensor) -> bool:
    return vector.device.type == "cpu" and vector.dtype in NUMBERS and torch.get_num_threads() <= THREADS


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
    gradients = random(learners, vector.d)
    ends = []
    for way in (library, in_passes):
        state = State(*[part.clone() for part in begun])
        for _ in range(3):
            for learner in range(learners):
                way(algorithm, state, learner, gradients[learner][None])
            state = state._replace(centre=state.previous, previous=state.centre)
        ends.append(state)
    return all(torch.equal(a, b) for a, b in zip(*ends, strict=True))
