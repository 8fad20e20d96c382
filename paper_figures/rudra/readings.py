"""How stored runs are read: errors with intervals, predicted times, protocol counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from paper_figures.rudra.settings import Configuration, at_profile
from suite.claims.measured import Measured, interval, point
from suite.papers.artifact import Evidence, Groups, Missing
from suite.runs.store import Run
from suite.spec import RunSpec

TEST_IMAGES = 10_000


def label(configuration: Configuration) -> str:
    """The paper's (sigma, mu, lambda), with n for sigma."""
    return "({}, {}, {})".format(*configuration)


def training_groups(profile: str, configurations: Iterable[Configuration]) -> dict[str, tuple[RunSpec, ...]]:
    """Groups of the configurations that the profile runs."""
    found = {label(c): at_profile(c, profile) for c in configurations}
    return {name: specs for name, specs in found.items() if specs}


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
    from suite.claims.intervals import mean_interval

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
    from suite.claims.intervals import paired_difference

    found = [paired_difference(a, b) for a, b in pairs]
    return interval(
        [f.mean for f in found],
        [f.low for f in found],
        [f.high for f in found],
        kind="measured",
        n=len(values[0]),
        runs=ids,
    )


class Times:
    """Predicted seconds of the CIFAR-10 grid."""

    def __init__(self, run: Run):
        self.run, self.ids = run, [run.id]
        self.seconds = {
            tuple(int(v) for v in row): float(value)
            for row, value in zip(run.results["rows"], run.results["predicted"], strict=True)
        }

    def __getitem__(self, configuration: Configuration) -> float:
        return self.seconds[configuration]

    def predicted(self, configuration: Configuration) -> Measured:
        """A held-out row's time, or a calibration row's, which decides nothing and is shown as a proxy."""
        from paper_figures.rudra.simulations import CALIBRATED

        fitted = configuration in CALIBRATED
        kind = "proxy" if fitted else "simulated"
        return point(self[configuration], kind=kind, runs=self.ids, note="calibration row" if fitted else "held out")

    def simulated(self, values: float | list[float]) -> Measured:
        return point(values, kind="simulated", runs=self.ids)


def times(evidence: Evidence) -> Times:
    return Times(evidence.run("times"))


def times_group() -> Groups:
    from paper_figures.rudra.simulations import cifar_times

    return {"times": (cifar_times(),)}
