"""Several learners on one device: k replicas in one step, a number that may change between steps.

The values are those of :mod:`reference_impls.crossbow`; this holds what surrounds it: which learner reads which
batch, batch-norm statistics of learners that join, and the path (looped or vectorised) the gradients take.

Batches are taken from one sequence: an iteration of k learners takes the next k. *Deterministic* (the default),
learner j takes the j-th of them. By the scheduler's rule, first come first served, it depends on who finished first;
:func:`suite.model_averaging.task_schedule.assignment` says which, of a simulated schedule or of one that
:mod:`suite.model_averaging.engine` ran. The centre's gradient sum is the same set of
batches either way, but each replica's own path differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from reference_impls.contract import GradientRef, Turn
from reference_impls.crossbow import SMA, SMAState
from suite.communication.collectives import Local
from suite.training.gradients.backend import Backend
from suite.training.gradients.batching import compute_gradients

Examples = Callable[[Tensor], Tensor]  # batch numbers [n] int64 -> example indices [n, b]


class Learners:
    """SMA with a number of learners that may change; ``k``, ``state`` and ``buffers`` are there to be read."""

    def __init__(self, algorithm: SMA, x0: Tensor, gradients: Backend, examples: Examples):
        """``x0`` [d]; ``examples`` maps batch numbers to indices of the problem's data set."""
        self.algorithm, self.gradients, self.examples = algorithm, gradients, examples
        self.state = algorithm.init(x0)
        self.buffers = gradients.problem.b0().expand(self.k, -1).clone()
        self.t = 0  # iterations done
        self.taken = 0  # batches taken from the sequence

    @property
    def k(self) -> int:
        return len(self.state.replicas)

    @property
    def centre(self) -> Tensor:
        """The central average model [d], which is the one evaluated."""
        return self.state.centre

    def step(self, lr: Tensor, numbers: Sequence[int] | None = None) -> Tensor:
        """One iteration: every learner reads one batch. Returns losses [k].

        ``numbers`` names the batch of each learner; by default the next k of the sequence in order. They must be
        those k in some order: a batch is removed from the set once taken (Alg. 1, lines 6-7).
        Raises ValueError otherwise.
        """
        following = list(range(self.taken, self.taken + self.k))
        if numbers is None:
            numbers = following
        elif sorted(numbers) != following:
            raise ValueError(f"batches {list(numbers)} are not the next {self.k}; those are {following}")
        turn = Turn(self.t, tuple(GradientRef(j, self.t, n) for j, n in enumerate(numbers)))
        points = self.algorithm.points(self.state, turn)
        losses, sums, self.buffers = compute_gradients(
            self.gradients, points, self.buffers, self.examples(points.batch)
        )
        self.state = self.algorithm.update(self.state, turn, losses, sums, lr)
        self.t += 1
        self.taken += self.k
        return losses

    def resize(self, learners: int) -> None:
        """Learners join (from the average model, with the mean batch-norm statistics) or leave, the last first.

        With several devices each keeps as many as the others. The batches already taken stay taken, so growing
        repeats none. Raises ValueError for fewer than one, or a number that does not fill the devices.
        """
        algorithm = replace(self.algorithm, collective=Local(learners))
        self.state, self.algorithm = algorithm.resize(self.state), algorithm
        self.buffers = algorithm.regrouped(self.buffers, self.buffers.mean(0))

    def take_up(self, state: SMAState, buffers: Tensor, t: int, taken: int) -> None:
        """Go on from what ``state``, ``buffers``, ``t`` and ``taken`` were, with as many learners as there were."""
        self.algorithm = replace(self.algorithm, collective=Local(len(state.replicas)))
        self.state, self.buffers, self.t, self.taken = state, buffers, t, taken

    def restart(self) -> None:
        """After a change of the learning rate."""
        self.state = self.algorithm.restart(self.state)
