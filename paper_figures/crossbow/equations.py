"""Equations 1 and 3, plain SGD and SGD with momentum, and time to accuracy, the paper's metric."""

from __future__ import annotations

from paper_figures.crossbow import settings
from paper_figures.crossbow.readings import results
from suite.claims.estimate import exact
from suite.model_averaging.time_to_accuracy import epochs_to_accuracy, time_to_accuracy
from suite.papers.artifact import Artifact, Evidence, Quantities


def runs(profile: str) -> settings.Groups:
    return {"algebra": (settings.ALGEBRA,)}


def measure_mean_gradient(evidence: Evidence) -> Quantities:
    return results(evidence, "algebra", {"mean": "mean_gradient"})


def measure_momentum(evidence: Evidence) -> Quantities:
    return results(evidence, "algebra", {"two-forms": "two_forms", "first-step": "first_step"})


def measure_time_to_accuracy(_: Evidence) -> Quantities:
    """Properties of the metric, from curves whose answers are known."""
    jump = [0.0] * 20 + [1.0] * 20
    after = epochs_to_accuracy(jump, 1.0)
    assert after is not None
    note = "a median over n epochs sees a jump (n + 1) / 2 epochs later"
    yield "median-of-5", exact(2 * (after - 20) - 1, note=note)
    gaps = []
    for step in (0.01, 0.02, 0.05):
        for seconds in (0.5, 3.0, 7.25):
            curve = [step * epoch for epoch in range(1, 200)]
            times = [seconds * epoch for epoch in range(1, 200)]
            epochs, reached = epochs_to_accuracy(curve, 0.8), time_to_accuracy(times, curve, 0.8)
            assert epochs is not None
            assert reached is not None
            gaps.append(abs(reached - epochs * seconds))
    yield "product", exact(max(gaps))


ARTIFACTS = (
    Artifact("crossbow/eq1", "SGD update with a mini-batch gradient", runs, (measure_mean_gradient,)),
    Artifact("crossbow/eq3", "SGD with momentum", runs, (measure_momentum,)),
    Artifact("crossbow/eqtta", "Time to accuracy", measures=(measure_time_to_accuracy,)),
)
