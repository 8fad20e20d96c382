"""The experiment ``isgd/imagenet``: ISGD on streamed ImageNet, batches in a fixed cycle; ``stop`` 0 is SGD.

Settings are those of ``train`` with ``crop`` and ``side`` pixels in place of ``data`` and ``order``, and
``evaluate.examples`` validation pictures.
"""

from __future__ import annotations

from torch import Tensor

from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec
from suite.training.gradients.paths import backend
from suite.training.loop import TrainingRun
from suite.training.numerics import apply
from suite.training.streaming import assembled_streamed, validated


def imagenet(spec: RunSpec, context: Context) -> Outcome:
    """Run or resume a training. Raises DataError where ImageNet is absent."""
    apply(context.execution)
    with assembled_streamed(spec.settings, spec.seed, context.execution, context.data) as made:

        def test(x: Tensor, buffers: Tensor) -> dict[str, float]:
            """With the top-5 error besides (Fig. 5f), on validation pictures, centre crops."""
            scores = validated(made.problem.flat, x, buffers, spec.settings, context.data)
            return dict(zip(("test_loss", "test_error", "top5_error"), scores, strict=True))

        return TrainingRun(spec, context, made, backend("looped", made.problem), test=test).run()
