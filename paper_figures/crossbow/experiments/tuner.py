"""The experiment ``crossbow/tuner``: Algorithm 2 and the settling rule, walked on scripted throughputs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pandas as pd

from reference_impls.crossbow_tuner import Literal, Settling, literal, settling
from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec


def tuner(spec: RunSpec, context: Context) -> Outcome:
    """Algorithm 2 and the settling rule on scripted throughput curves with one peak.

    ``literal_distance``: farthest from the peak in the second half of noise-free runs. ``literal_lost``: share of
    noisy runs on a plateau that reach 0 learners. ``settled``: share of noisy runs that end within one of the peak.
    """
    draw = random.Random(spec.seed)
    lines: list[dict[str, Any]] = []
    distances = []
    for peak in range(1, 9):
        curve = _curve(peak)
        state, visited = Literal(), []
        for reading in range(60):
            state = literal(state, curve(state.learners), threshold=0.02 * curve(1))
            visited.append(state.learners)
            lines.append({"rule": "Algorithm 2", "peak": peak, "reading": reading, "learners": state.learners})
        distances.append(max(abs(count - peak) for count in visited[30:]))
        settled, reading = Settling(), 0
        while not settled.holding:
            settled = settling(settled, curve(settled.learners))
            lines.append({"rule": "settling", "peak": peak, "reading": reading, "learners": settled.learners})
            reading += 1
    lost = 0
    for _ in range(spec.settings["lost_runs"]):
        state = Literal()  # on a plateau, as in Fig. 14 with 8 GPUs: more than 4 learners gain nothing
        for _ in range(2000):
            throughput = 1000 * min(state.learners, 4) * draw.gauss(1, 0.005)
            state = literal(state, throughput, threshold=20.0)
            if state.learners == 0:
                lost += 1
                break
    close = 0
    for _ in range(spec.settings["settling_runs"]):
        peak = draw.randint(1, 8)
        curve, held = _curve(peak), Settling()
        while not held.holding:
            held = settling(held, curve(held.learners) * draw.gauss(1, 0.02))
        close += abs(held.learners - peak) <= 1
    first = literal(Literal(), 100.0, threshold=5.0)
    three = Literal(3, 100.0)
    results = {
        "starts_at": Literal().learners,
        "after_first": first.learners,
        "on_rise": literal(three, 105.1, threshold=5.0).learners - 3,
        "on_fall": literal(three, 99.9, threshold=5.0).learners - 3,
        "on_plateau": [literal(three, t, threshold=5.0).learners - 3 for t in (100.0, 102.0, 105.0)],
        "literal_distance": max(distances),
        "literal_lost": lost / spec.settings["lost_runs"],
        "settled": close / spec.settings["settling_runs"],
        "settling_runs": spec.settings["settling_runs"],
    }
    return Outcome("finished", results, {"walks": pd.DataFrame(lines)})


def _curve(peak: int) -> Callable[[int], float]:
    """Throughput in proportion to the learners up to the peak, 3% less for each learner beyond; 0 for none."""
    return lambda learners: 1000 * min(learners, peak) * 0.97 ** max(0, learners - peak)
