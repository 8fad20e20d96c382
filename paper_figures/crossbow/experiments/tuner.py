"""The experiment ``crossbow/tuner``: Algorithm 2 and the settling rule, walked on scripted throughputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from reference_impls.crossbow_tuner import Literal, Settling, literal, settling
from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec


def tuner(spec: RunSpec, context: Context) -> Outcome:
    """Learners after each reading of throughputs with one peak, by both rules."""
    lines: list[dict[str, Any]] = []
    for peak in range(1, 9):
        curve = _curve(peak)
        state = Literal()
        for reading in range(60):
            state = literal(state, curve(state.learners), threshold=0.02 * curve(1))
            lines.append({"rule": "Algorithm 2", "peak": peak, "reading": reading, "learners": state.learners})
        settled, reading = Settling(), 0
        while not settled.holding:
            settled = settling(settled, curve(settled.learners))
            lines.append({"rule": "settling", "peak": peak, "reading": reading, "learners": settled.learners})
            reading += 1
    return Outcome("finished", {}, {"walks": pd.DataFrame(lines)})


def _curve(peak: int) -> Callable[[int], float]:
    """Throughput in proportion to the learners up to the peak, 3% less for each learner beyond; 0 for none."""
    return lambda learners: 1000 * min(learners, peak) * 0.97 ** max(0, learners - peak)
