"""The experiment ``matex_agd/imagenet``: a row of Table 1 on ImageNet itself, streamed.

Settings are those of ``train`` with ``crop`` and ``side`` pixels in place of ``data`` and ``order``, and
``evaluate.examples`` validation pictures. Every worker has a part of the training set, as in section 5.1.
"""

from __future__ import annotations

from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec
from suite.training.gradients.paths import backend
from suite.training.loop import TrainingRun
from suite.training.numerics import apply
from suite.training.streaming import assembled_streamed


def imagenet(spec: RunSpec, context: Context) -> Outcome:
    """Run or resume a row. Raises DataError where ImageNet is absent."""
    apply(context.execution)
    with assembled_streamed(spec.settings, spec.seed, context.execution, context.data) as made:
        return TrainingRun(spec, context, made, backend("looped", made.problem)).run()
