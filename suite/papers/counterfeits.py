"""Evidence from worlds in which a claim is false; what the judge makes of them is a trial (``suite.papers.trials``).

Beside a measure stands a small function for each way in which its claim could be false::

    @counterfeit("isgd/fig5b/gain", "isgd/fig5b/isgd-above-sgd")
    def sides_exchanged(evidence):
        return exchanged(evidence, "sgd", "isgd")

It returns the same evidence with other *results or tables* in its runs, of the same shape, count and spread, or the
runs of a short experiment computed anew with other settings. Specifications are never touched, nor is what a measure
returns. In each such world a *reproduced* claim must become *not reproduced*; *inconclusive* is a weak counterfeit,
and anything else a failure. A claim that is *not reproduced* has a :func:`genuine` world instead, in which it holds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.papers.artifact import Evidence, plain
from suite.runs.archive import Runs
from suite.runs.store import Run
from suite.spec import RunSpec, thaw

if TYPE_CHECKING:
    import pandas as pd

World = Callable[[Evidence], Evidence]

COUNTERFEITS: dict[str, list[World]] = {}
GENUINE: dict[str, list[World]] = {}


def counterfeit(*claims: str) -> Callable[[World], World]:
    """Register a world in which these claims are false."""

    def add(world: World) -> World:
        for claim in claims:
            COUNTERFEITS.setdefault(claim, []).append(world)
        return world

    return add


def genuine(*claims: str) -> Callable[[World], World]:
    """Register a world in which these claims, *not reproduced* by the stored runs, are true."""

    def add(world: World) -> World:
        for claim in claims:
            GENUINE.setdefault(claim, []).append(world)
        return world

    return add


@dataclass(frozen=True)
class Forged(Run):
    """A run that says something else than what is stored under its specification. It cannot be stored."""

    says: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def results(self) -> dict[str, Any]:
        return {**super().results, **self.says}

    def curve(self, name: str) -> pd.DataFrame:
        return self.tables[name] if name in self.tables else super().curve(name)


def forged(run: Run, results: Mapping[str, Any] | None = None, **tables: pd.DataFrame) -> Run:
    """The run with some results and tables replaced. Raises ValueError for names it does not have."""
    if unknown := (set(results or {}) - set(run.results)) | (set(tables) - set(run.curves)):
        raise ValueError(f"run {run.id} has no {sorted(unknown)}: it has {sorted(run.results)} and {run.curves}")
    before = run if isinstance(run := plain(run), Forged) else None
    return Forged(
        run.id,
        run.files,
        {**(before.says if before else {}), **(results or {})},
        {**(before.tables if before else {}), **tables},
    )


def told_as(run: Run, other: Run) -> Run:
    """What ``other`` came to, told under the specification of ``run``."""
    other = plain(other)
    files = {**other.files, "spec.json": run.files["spec.json"]}
    before = other if isinstance(other, Forged) else None
    return Forged(run.id, files, before.says if before else {}, before.tables if before else {})


class _Substituted:
    """Runs of a source, some of them replaced."""

    def __init__(self, source: Runs, replaced: Mapping[str, Run]):
        self._source, self._replaced = source, replaced

    def ids(self) -> set[str]:
        return self._source.ids()

    def read(self, run_id: str) -> Run:
        return self._replaced[run_id] if run_id in self._replaced else self._source.read(run_id)


def replaced(evidence: Evidence, runs: Mapping[str, Run]) -> Evidence:
    """The same evidence with some runs, by id, saying something else."""
    return Evidence(_Substituted(evidence.source, runs), evidence.groups, evidence.profile)


def edited(evidence: Evidence, edit: Callable[[Run], Run], *groups: str) -> Evidence:
    """Every run of these groups (of all, without names) changed by ``edit``; runs that are not stored stay so."""
    made = {}
    for name in groups or evidence.groups:
        for spec in evidence.groups[name]:
            try:
                made[spec.id] = edit(evidence.source.read(spec.id))
            except KeyError:
                continue
    return replaced(evidence, made)


def exchanged(evidence: Evidence, one: str, other: str) -> Evidence:
    """The outcomes of two groups change places, run by run in their order."""
    pairs = list(zip(evidence.runs(one), evidence.runs(other), strict=True))
    told = [told_as(a, b) for a, b in pairs] + [told_as(b, a) for a, b in pairs]
    return replaced(evidence, {run.id: run for run in told})


def as_if(evidence: Evidence, group: str, like: str) -> Evidence:
    """The runs of ``group`` came to what those of ``like`` came to: the treatment did nothing."""
    told = [told_as(a, b) for a, b in zip(evidence.runs(group), evidence.runs(like), strict=True)]
    return replaced(evidence, {run.id: run for run in told})


def rerun(evidence: Evidence, change: Callable[[dict[str, Any]], dict[str, Any]], *groups: str) -> Evidence:
    """The runs of these groups computed again with other settings, told under the old ones; for bodies under 10 s."""
    from suite.experiment import Context
    from suite.papers.catalogue import experiment

    def again(run: Run) -> Run:
        spec = RunSpec(run.spec.experiment, change(thaw(run.spec.settings)), run.spec.seed)
        with tempfile.TemporaryDirectory() as folder:
            context = Context(Path(folder), run.environment["execution"])
            outcome = experiment(spec.experiment).load()(spec, context)
        return Forged(run.id, run.files, dict(outcome.results), dict(outcome.curves))

    return edited(evidence, again, *groups)
