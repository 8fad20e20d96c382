"""Plain SGD as a search of a threshold needs it: a pure function of the state and the batch number."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torch import Tensor

from reference_impls.contract import Ask, Told, Turn
from suite.algorithms import algorithm
from suite.batch_size.threshold import Reading
from suite.communication.collectives import in_process
from suite.training.fused_step import donated
from suite.training.gradients.rows import Gradients, answer
from suite.training.schedules import rounds


class SteppedSgd:
    """Rounds of all workers, batch number t split over them in update t.

    A subclass says which examples a batch number means (``examples``) and how a loss is read (``reader``).
    """

    test_examples: int  # that a reading looks at

    def __init__(self, gradients: Gradients, descent: Any, rate: Tensor, workers: int = 1):
        """``gradients`` knows its problem, flat parameters with ``b0()``; ``rate`` is 0-d."""
        self.gradients, self.problem = gradients, gradients.problem
        self.algorithm, self.collective = algorithm("sgd"), in_process(workers)
        self.flat = self.problem.flat
        self.descent, self.rate, self.workers = donated(self.algorithm, descent, self.flat.x), rate, workers
        self.buffers = self.problem.b0()[None].repeat(workers, 1)
        self.seconds = 0.0  # spent on updates alone

    def examples(self, t: int) -> Tensor:
        """Numbers of the examples [workers, b] of update t."""
        raise NotImplementedError

    def reader(self, sample: str) -> Callable[[Any, float], Reading]:
        """How a monitor reads the loss of a state on a sample, against a threshold."""
        raise NotImplementedError

    def start(self) -> Any:
        """The state before the first update."""
        return self.algorithm.init(None, self.flat.point(), self.workers, self.workers, self.descent)

    def advance(self, state: Any, first: int, last: int) -> Any:
        """The state after updates ``first`` .. ``last - 1``; the one passed in stays as it is."""
        began = time.perf_counter()
        state = copied(state)
        for t in range(first, last):
            state = self.update(state, t)
        self.seconds += time.perf_counter() - began
        return state

    def update(self, state: Any, t: int) -> Any:
        """The state after update t; the one passed in may be overwritten."""
        turn = self.turn(t)
        ask, examples = self.request(state, turn)
        return self.tell(state, turn, *answer(self.gradients, ask, self.buffers, examples))

    def turn(self, t: int) -> Turn:
        return next(rounds(self.workers, start=t))

    def request(self, state: Any, turn: Turn) -> tuple[Ask, Tensor]:
        """Points and examples [n, b] of a turn's gradients."""
        return self.algorithm.ask(None, state, turn), self.examples(turn.t)

    def tell(self, state: Any, turn: Turn, losses: Tensor, sums: Tensor, buffers: Tensor) -> Any:
        """The state after the turn; the one passed in may be overwritten."""
        self.buffers = buffers
        return self.algorithm.tell(
            None,
            state,
            turn,
            Told(losses, sums),
            collective=self.collective,
            descent=self.descent,
            lr=self.rate,
        )

    def load(self, state: Any) -> None:
        """Put the weights of a state, and the first worker's buffers, into the network."""
        self.flat.load(self.algorithm.model(None, state, self.collective), self.buffers[0])


def copied(state: Any) -> Any:
    """A state of tensors that may be overwritten."""
    return type(state)(*(tensor.clone() for tensor in state))
