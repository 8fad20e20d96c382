"""A table, figure, algorithm or equation of a paper: the runs it needs, what it measures, how it is drawn.

Nothing here imports torch, numpy or matplotlib: ``list``, ``plan`` and ``check`` must start fast. Modules that
define artifacts import numpy and pandas inside the functions that compute, matplotlib inside those that draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suite.archive import Runs, versions
from suite.experiments import Experiment
from suite.measured import Measured
from suite.spec import RunSpec
from suite.store import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Groups = Mapping[str, tuple[RunSpec, ...]]


class Missing(Exception):
    """Runs that a quantity or a drawing needs are not stored."""


class Evidence:
    """The stored runs of one artifact at one profile, by the names its ``runs`` function gave them."""

    def __init__(self, source: Runs, groups: Groups, profile: str):
        self.source, self.groups, self.profile = source, groups, profile
        self.sources: dict[str, str] = {}  # run id -> fingerprint of the code that computed it
        self.versions: dict[str, list[Run]] = {}  # runs that the source holds more than once

    def runs(self, group: str) -> tuple[Run, ...]:
        """All runs of a group, verified. Raises Missing saying how many are not stored."""
        found, absent = [], 0
        if not self.groups.get(group):
            raise Missing(f"no runs of {group!r} at {self.profile}")
        for spec in self.groups[group]:
            try:
                run, *others = versions(self.source, spec.id)
                found.append(run)
                self.sources[spec.id] = run.environment.get("source", "unknown")
                if others:
                    self.versions[spec.id] = [run, *others]
            except KeyError:
                absent += 1
        if absent:
            raise Missing(f"{absent} of {len(self.groups[group])} runs of {group!r} at {self.profile}")
        return tuple(found)

    def restricted(self, groups: Groups) -> Evidence:
        """The same evidence seen through some of its groups."""
        part = Evidence(self.source, groups, self.profile)
        part.sources, part.versions = self.sources, self.versions
        return part

    def run(self, group: str) -> Run:
        """The only run of a group."""
        (run,) = self.runs(group)
        return run


Quantities = Iterable[tuple[str, Measured]]


def no_runs(profile: str) -> Groups:
    """For artifacts decided by arithmetic alone."""
    return {}


@dataclass(frozen=True)
class Artifact:
    """``measures`` yield (quantity, Measured); each stops at the first Missing without hindering the others.

    ``draw`` fills a figure from the evidence; None where the claims table says all there is to see.
    """

    id: str
    title: str
    runs: Callable[[str], Groups] = no_runs
    measures: tuple[Callable[[Evidence], Quantities], ...] = ()
    draw: Callable[[Evidence, Figure], None] | None = None
    alt: str = ""  # what the drawing shows, for readers who cannot see it
    size: tuple[float, float] = (6.4, 4.0)  # inches


@dataclass(frozen=True)
class Paper:
    """A paper's short name, citation, artifacts in the paper's order, and own experiments by name."""

    name: str
    title: str
    citation: str
    artifacts: tuple[Artifact, ...]
    experiments: Mapping[str, Experiment]

    def artifact(self, artifact_id: str) -> Artifact:
        for artifact in self.artifacts:
            if artifact.id == artifact_id:
                return artifact
        raise KeyError(artifact_id)
