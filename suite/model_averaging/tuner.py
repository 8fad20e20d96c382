"""The learner auto-tuner at work: throughput is measured, learners are added or taken away.

The rules are plain state machines (:mod:`reference_impls.crossbow_tuner`); here they meet a clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from reference_impls.crossbow_tuner import Settling, settling
from suite.model_averaging.engine import Learners

LIMIT = 1000  # readings


@dataclass(frozen=True)
class ThroughputReading:
    """Throughput in examples/second with ``learners`` learners per device, and what the rule then asked for."""

    learners: int
    throughput: float
    asked: int
    seconds: float  # taken by the change of the number of learners, 0 where there was none


def tune(
    learners: Learners,
    measure: Callable[[], float],
    *,
    threshold: float = 0.1,
    readings: int = 5,
    most: int | None = None,
) -> list[ThroughputReading]:
    """Grow (and step back once) until the settling rule holds; every reading that was taken.

    ``measure()`` trains for an interval and returns its throughput in examples/second, a warm-up left out after each
    change. Starts from the learners that are there. ``most`` is what memory allows.
    Raises ValueError if the rule has not settled after ``LIMIT`` readings.
    """
    tuner = Settling(learners=learners.k)
    history: list[ThroughputReading] = []
    while not tuner.holding:
        if len(history) == LIMIT:
            raise ValueError(f"the number of learners has not settled after {LIMIT} readings; raise the threshold")
        throughput = measure()
        tuner = settling(tuner, throughput, threshold=threshold, readings=readings, most=most)
        before, began, changed = learners.k, time.perf_counter(), 0.0
        if tuner.learners != before:
            learners.resize(tuner.learners)
            changed = time.perf_counter() - began
        history.append(ThroughputReading(before, throughput, tuner.learners, changed))
    return history
