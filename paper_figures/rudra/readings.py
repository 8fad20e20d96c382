"""How stored runs are read: errors with intervals, predicted times, protocol counts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from paper_figures.rudra import seeds
from paper_figures.rudra.groups import label
from paper_figures.rudra.settings import Configuration, at_profile
from paper_figures.rudra.simulations import ImageNetRow
from suite.claims.measured import Measured, exact, interval, over_seeds, point
from suite.papers.artifact import Evidence, Missing
from suite.papers.counterfeits import edited, forged
from suite.runs.store import Run


def counted(value: float | Sequence[float], *runs: Run) -> Measured:
    """A deterministic property counted in simulated runs."""
    return exact(value, runs=[run.id for run in runs])


def simulated(value: float | Sequence[float], *runs: Run) -> Measured:
    return point(value, runs=[run.id for run in runs])


def runs_of(evidence: Evidence, group: str) -> tuple[Run, ...]:
    """A training group's runs of the first seeds, up to the first that is not stored.

    Raises Missing where there is none, and where the profile does not run the group at all.
    """
    found: list[Run] = []
    for spec in evidence.groups.get(group, ()):
        try:
            found.append(evidence.restricted({group: (spec,)}).run(group))
        except Missing:
            break
    if not found:
        raise Missing(f"no training of {group} at {evidence.profile}")
    return tuple(found)


def errors(evidence: Evidence, group: str) -> list[float]:
    """Final test errors in %, one per seed."""
    return [100 * float(run.results["test_error"]) for run in runs_of(evidence, group)]


def own_seeds(evidence: Evidence) -> dict[str, list[float]]:
    """Final errors in % of the configurations that give the spread; empty until all of their seeds are stored."""
    named = {label(row): at_profile(row, "paper") for row in seeds.NAMED}
    try:
        runs = {name: evidence.restricted({name: specs}).runs(name) for name, specs in named.items()}
    except Missing:
        return {}
    return {name: [100 * float(run.results["test_error"]) for run in found] for name, found in runs.items()}


def contrast(evidence: Evidence, weights: Mapping[str, float]) -> Measured:
    """Weighted sum of final errors of groups, with the interval of :func:`seeds.contrast`."""
    own = own_seeds(evidence)
    found = seeds.contrast(weights, {group: errors(evidence, group) for group in weights}, own)
    ids = [run.id for group in weights for run in runs_of(evidence, group)]
    spread = "our own seeds of three configurations" if own else "the paper's Table 2, by its pairs of rows"
    return over_seeds(found, ids, f"{found.n} seed{'s' * (found.n > 1)}; spread between seeds from {spread}")


def final_error(evidence: Evidence, group: str) -> Measured:
    """Mean final error in %."""
    return contrast(evidence, {group: 1.0})


def erring_half_more(evidence: Evidence, *groups: str) -> Evidence:
    """A world for counterfeits: trainings (of these groups, or all) end with half as many errors again."""

    def edit(run: Run) -> Run:
        if "test_error" not in run.results:
            return run
        return forged(run, {"test_error": 1.5 * run.results["test_error"]})

    return edited(evidence, edit, *groups)


def error_steps(evidence: Evidence, groups: Sequence[str]) -> Measured:
    """Steps of the final error in points from each group to the next."""
    return joined([contrast(evidence, {a: -1.0, b: 1.0}) for a, b in itertools.pairwise(groups)])


def joined(parts: list[Measured]) -> Measured:
    """Quantities one after the other as one; whether it is a proxy, its repetitions and its note are the first's."""
    return Measured(
        tuple(v for p in parts for v in p.values),
        tuple(v for p in parts for v in p.low),
        tuple(v for p in parts for v in p.high),
        parts[0].n,
        tuple(run for p in parts for run in p.runs),
        parts[0].note,
        parts[0].proxy,
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
        """The time of a row that the model was not fitted to."""
        return point(self[configuration], runs=self.ids, note="held out")

    def simulated(self, values: float | list[float]) -> Measured:
        return point(values, runs=self.ids)


def left_out(evidence: Evidence) -> dict[tuple[Any, ...], Measured]:
    """Each row of a calibration as the others predict it, by row; the interval spans the starts of the fits."""
    run = evidence.run("left out")
    starts = len(run.spec.settings["starts"])
    note = "calibrated on the other rows" + (f"; ends over {starts} starts of the fit" if starts > 1 else "")
    return {
        tuple(row): interval(found[0], min(found), max(found), runs=[run.id], note=note)
        for row, found in zip(run.results["rows"], run.results["predicted"], strict=True)
    }


def minutes_by_row(run: Run) -> dict[ImageNetRow, float]:
    """Predicted minutes per epoch of ImageNet by row."""
    rows = zip(run.results["rows"], run.results["predicted"], strict=True)
    return {(name, n, mu, learners): minutes for (name, n, mu, learners), minutes in rows}
