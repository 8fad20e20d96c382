"""Stored runs that follow a known law, for drawings and measures: searches of Figs. 1 and 2, and a closed loop."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

import pandas as pd

from paper_figures.inverse_law import fig2, settings
from suite.runs.store import Outcome, Run, encode
from suite.spec import RunSpec

FLOOR, SENSITIVITY = 90.0, 9_000.0  # updates; updates x examples
SCATTER = 0.05


def count(spec: RunSpec, place: int) -> int:
    """Updates to the ``place``-th threshold by the law, later ones taking longer, seeds scattered; -1: censored."""
    size, sensitivity = spec.settings.get("batch"), SENSITIVITY
    if size is None:
        size, sensitivity = spec.settings["words"], 12 * SENSITIVITY  # per word, not per example
    draw = random.Random(f"{spec.seed} {size} {place}")
    updates = round((FLOOR + sensitivity / size) * 1.7**place * math.exp(draw.gauss(0, SCATTER)))
    return updates if updates <= spec.settings["limit"] else -1


def search(spec: RunSpec) -> Outcome:
    """The outcome of a search."""
    results: dict[str, object] = {"updates": 1, "parameters": 1, "test_examples": 1, "update_seconds": 1.0}
    for name, thresholds in spec.settings["monitors"].items():
        falling = sorted(thresholds, reverse=True)
        crossed = [count(spec, place) for place in range(len(falling))]
        results |= {f"thresholds_{name}": falling, f"crossed_{name}": crossed}
    if "words" in spec.settings:
        results["bleu_beam"] = 10.0 + spec.seed
    return Outcome("finished", results, {"tests": pd.DataFrame({"monitor": [], "update": [], "loss": []})})


def closed_loop() -> Outcome:
    """A machine with its knee at 16, and a law fitted to it."""
    batches, seeds = settings.LOOP.settings["batches"], settings.LOOP.settings["seeds"]
    seconds = {b: 2e-5 * max(b, 16) * (1 + 0.02 * math.log2(b)) for b in batches}
    law = {b: 40 + 800 / b for b in batches}
    draw = random.Random(0)
    runs = [
        (b, s, repeat, round(law[b]), law[b] * seconds[b] * math.exp(draw.gauss(0, 0.05)), seconds[b], seconds[b])
        for b in batches
        for s in seeds
        for repeat in range(3)
    ]
    rounds = [
        (r, n, b, seconds[b] * math.exp(draw.gauss(0, 0.1))) for r in range(3) for n in range(4) for b in batches
    ]
    table = {
        "batch": batches,
        "update_seconds": [seconds[b] for b in batches],
        "censored": [0] * len(batches),
        "predicted_seconds": [law[b] * seconds[b] for b in batches],
        "predicted_updates": [law[b] for b in batches],
    }
    best = min(batches, key=lambda b: law[b] * seconds[b])
    return Outcome(
        "finished",
        {"chosen": best, "closed_form": 16.0, "clock": "thread", "knee_misfit": 0.1, "floor": 40, "sensitivity": 800},
        {
            "batches": pd.DataFrame(table),
            "runs": pd.DataFrame(runs, columns=["batch", "seed", "repeat", "updates", "seconds", "early", "late"]),
            "timings": pd.DataFrame(rounds, columns=["repeat", "round", "batch", "seconds"]),
        },
    )


def noise() -> Outcome:
    """Variances of a gradient that fall as 1/M."""
    batches = settings.NOISE.settings["batches"]
    return Outcome(
        "finished", {}, {"variance": pd.DataFrame({"batch": batches, "variance": [1 / b for b in batches]})}
    )


class Made:
    """Runs in memory, each told by a function of its specification when it is read."""

    def __init__(self, specs: Iterable[RunSpec], outcomes: Callable[[RunSpec], Outcome]):
        self._specs = {spec.id: spec for spec in specs}
        self._outcomes = outcomes

    def ids(self) -> set[str]:
        return set(self._specs)

    def read(self, run_id: str) -> Run:
        spec = self._specs[run_id]
        return Run(run_id, encode(spec, {"execution": {}}, self._outcomes(spec)))


def learners(spec: RunSpec) -> Outcome:
    """Every number of learners stops at the same update."""
    return Outcome("finished", {"crossed_training": [31], "thresholds_training": [0.4]})


def outcome(spec: RunSpec) -> Outcome:
    """What a run of the paper's artifacts came to."""
    if spec.experiment == "inverse_law/loop":
        return closed_loop()
    if spec.experiment == "inverse_law/noise":
        return noise()
    return learners(spec) if spec in settings.SPLIT else search(spec)


def fill(profile: str = "reduced") -> Made:
    """Every search of the figures at ``profile``, the closed loop and the gradients' noise."""
    specs = {spec for group in settings.law_runs(profile).values() for spec in group}
    specs |= {s for rate in fig2.RATES for group in fig2.panel_runs(rate)(profile).values() for s in group}
    return Made({*specs, settings.LOOP}, outcome)
