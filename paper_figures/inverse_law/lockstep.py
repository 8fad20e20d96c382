"""Plain SGD as a search of a threshold needs it: a pure function of the state and the batch number."""

from __future__ import annotations

import time
from typing import Any

from torch import Tensor

from reference_impls.contract import Told
from suite.algorithms import algorithm
from suite.collectives import Local
from suite.gradients import Gradients, answer
from suite.schedules import rounds


class Lockstep:
    """Rounds of all workers, batch number t split over them in update t.

    A subclass says which examples a batch number means (``examples``) and how a loss is read (``reader``).
    """

    def __init__(self, gradients: Gradients, descent: Any, rate: Tensor, workers: int = 1):
        """``gradients`` knows its problem, flat parameters with ``b0()``; ``rate`` is 0-d."""
        self.gradients, self.problem = gradients, gradients.problem
        self.algorithm, self.collective = algorithm("sgd"), Local(workers)
        self.descent, self.rate, self.workers = descent, rate, workers
        self.flat = self.problem.flat
        self.buffers = self.problem.b0()[None].repeat(workers, 1)
        self.seconds = 0.0  # spent on updates alone

    def examples(self, t: int) -> Tensor:
        """Numbers of the examples [workers, b] of update t."""
        raise NotImplementedError

    def start(self) -> Any:
        """The state before the first update."""
        return self.algorithm.init(None, self.flat.point(), self.workers, self.workers, self.descent)

    def advance(self, state: Any, first: int, last: int) -> Any:
        """The state after updates ``first`` .. ``last - 1``."""
        began = time.perf_counter()
        for turn in rounds(self.workers, start=first):
            if turn.t >= last:
                break
            ask = self.algorithm.ask(None, state, turn)
            losses, sums, self.buffers = answer(self.gradients, ask, self.buffers, self.examples(turn.t))
            state = self.algorithm.tell(
                None,
                state,
                turn,
                Told(losses, sums),
                collective=self.collective,
                descent=self.descent,
                lr=self.rate,
            )
        self.seconds += time.perf_counter() - began
        return state

    def load(self, state: Any) -> None:
        """Put the weights of a state, and the first worker's buffers, into the network."""
        self.flat.load(self.algorithm.model(None, state, self.collective), self.buffers[0])
