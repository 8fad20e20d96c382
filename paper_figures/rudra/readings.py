"""How stored runs are read: errors with intervals, predicted times, protocol counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from paper_figures.rudra.settings import Configuration
from paper_figures.rudra.simulations import CALIBRATED, ImageNetRow
from suite.claims.intervals import mean_interval, paired_difference
from suite.claims.measured import Measured, exact, interval, point
from suite.papers.artifact import Evidence, Missing
from suite.runs.store import Run

TEST_IMAGES = 10_000


def counted(value: float | Sequence[float], *runs: Run) -> Measured:
    """A deterministic property counted in simulated runs."""
    return exact(value, runs=[run.id for run in runs])


def simulated(value: float | Sequence[float], *runs: Run) -> Measured:
    return point(value, kind="simulated", runs=[run.id for run in runs])


def runs_of(evidence: Evidence, group: str) -> tuple[Run, ...]:
    """A group's runs; Missing also where the profile does not run it at all."""
    if group not in evidence.groups:
        raise Missing(f"{group} is not trained at profile {evidence.profile}")
    return evidence.runs(group)


def errors(evidence: Evidence, group: str) -> list[float]:
    """Final test errors in %, one per seed."""
    return [100 * float(run.results["test_error"]) for run in runs_of(evidence, group)]


def sampling(error: float) -> float:
    """Half the 95% interval of a test error in points, as far as the choice of the test images goes."""
    share = error / 100
    return 196 * math.sqrt(max(share * (1 - share), 1e-9) / TEST_IMAGES)


def final_error(evidence: Evidence, group: str) -> Measured:
    """Mean final error with a t interval over seeds, or one run's with the test set's sampling interval."""
    values = errors(evidence, group)
    ids = [run.id for run in runs_of(evidence, group)]
    if len(values) == 1:
        note = "one seed; interval of the test set's sampling alone"
        return point(values[0], kind="measured", spread=sampling(values[0]), runs=ids, note=note)
    found = mean_interval(values)
    return interval(found.mean, found.low, found.high, kind="measured", n=len(values), runs=ids)


def error_steps(evidence: Evidence, groups: list[str]) -> Measured:
    """Steps of the final error in points from each group to the next."""
    values = [errors(evidence, group) for group in groups]
    ids = [run.id for group in groups for run in runs_of(evidence, group)]
    pairs = list(itertools.pairwise(values))
    if any(len(v) == 1 for v in values):
        steps = [b[0] - a[0] for a, b in pairs]
        spread = [math.hypot(sampling(a[0]), sampling(b[0])) for a, b in pairs]
        note = "one seed each; interval of the test set's sampling alone"
        return point(steps, kind="measured", spread=spread, runs=ids, note=note)
    found = [paired_difference(a, b) for a, b in pairs]
    return interval(
        [f.mean for f in found],
        [f.low for f in found],
        [f.high for f in found],
        kind="measured",
        n=len(values[0]),
        runs=ids,
    )


def joined(parts: list[Measured]) -> Measured:
    """Quantities one after the other as one; its kind, repetitions and note are the first's."""
    return Measured(
        tuple(v for p in parts for v in p.values),
        tuple(v for p in parts for v in p.low),
        tuple(v for p in parts for v in p.high),
        parts[0].kind,
        parts[0].n,
        tuple(run for p in parts for run in p.runs),
        parts[0].note,
    )


class CifarTimes:
    """Predicted seconds of the CIFAR-10 grid by configuration, read from the group "times"."""

    def __init__(self, evidence: Evidence):
        run = evidence.run("times")
        self.ids = [run.id]
        self.seconds: dict[Configuration, float] = {
            (n, mu, learners): value
            for (n, mu, learners), value in zip(run.results["rows"], run.results["predicted"], strict=True)
        }

    def __getitem__(self, configuration: Configuration) -> float:
        return self.seconds[configuration]

    def predicted(self, configuration: Configuration) -> Measured:
        """A held-out row's time, or a calibration row's, which decides nothing and is shown as a proxy."""
        fitted = configuration in CALIBRATED
        kind = "proxy" if fitted else "simulated"
        return point(self[configuration], kind=kind, runs=self.ids, note="calibration row" if fitted else "held out")

    def simulated(self, values: float | list[float]) -> Measured:
        return point(values, kind="simulated", runs=self.ids)


def left_out(evidence: Evidence) -> dict[tuple[Any, ...], Measured]:
    """Each row of a calibration as the others predict it, by row; the interval spans the starts of the fits."""
    run = evidence.run("left out")
    starts = len(run.spec.settings["starts"])
    note = "calibrated on the other rows" + (f"; ends over {starts} starts of the fit" if starts > 1 else "")
    return {
        tuple(row): interval(found[0], min(found), max(found), kind="simulated", runs=[run.id], note=note)
        for row, found in zip(run.results["rows"], run.results["predicted"], strict=True)
    }


def minutes_by_row(run: Run) -> dict[ImageNetRow, float]:
    """Predicted minutes per epoch of ImageNet by row."""
    rows = zip(run.results["rows"], run.results["predicted"], strict=True)
    return {(name, n, mu, learners): minutes for (name, n, mu, learners), minutes in rows}
