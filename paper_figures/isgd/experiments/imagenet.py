"""The experiment ``isgd/imagenet``: ISGD on streamed ImageNet, batches in a fixed cycle; ``stop`` 0 is SGD.

Settings are those of ``train`` with ``crop`` and ``side`` pixels in place of ``data`` and ``order``, and
``evaluate.examples`` validation pictures.
"""

from __future__ import annotations

from typing import Any

from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec
from suite.training.gradients.paths import PATHS
from suite.training.loop import Session
from suite.training.numerics import apply
from suite.training.streamed import assemble_streamed, validated


class Top5Session(Session):
    """A training run whose tests give the top-5 error as well (Fig. 5f)."""

    def evaluate(self) -> None:
        """Add an evaluation row: loss, top-1 and top-5 error on validation pictures, centre crops."""
        x = self.algorithm.model(self.state)
        loss, error, error5 = validated(
            self.problem.flat, x, self.buffers.mean(0), self.spec.settings, self.context.data
        )
        self.recorder.evaluate(**self.position(), test_loss=loss, test_error=error, top5_error=error5)
        self.diverged = not self.recorder.settle()


def imagenet(spec: RunSpec, context: Context) -> Outcome:
    """Run or resume a training. Raises DataError where ImageNet is absent."""
    apply(context.execution)
    made = assemble_streamed(spec.settings, spec.seed, context.execution, context.data)
    problem: Any = made.problem
    try:
        return Top5Session(spec, context, made, PATHS["looped"](problem)).run()
    finally:
        problem.close()
