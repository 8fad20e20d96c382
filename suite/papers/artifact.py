"""A table, figure, algorithm or equation of a paper: the runs it needs, what it measures, how it is drawn.

Nothing here imports torch, numpy or matplotlib: ``list``, ``plan`` and ``check`` must start fast. Modules that
define artifacts import numpy and pandas inside the functions that compute, matplotlib inside those that draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suite.claims.measured import Measured
from suite.experiment import Experiment
from suite.runs.archive import Runs
from suite.runs.store import Run
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Groups = Mapping[str, tuple[RunSpec, ...]]


class Missing(Exception):
    """Runs that a quantity or a drawing needs are not stored."""


class Evidence:
    """The stored runs of one artifact at one profile, by the names its ``runs`` function gave them."""

    def __init__(self, source: Runs, groups: Groups, profile: str):
        self.source, self.groups, self.profile = source, groups, profile

    def runs(self, group: str) -> tuple[Run, ...]:
        """All runs of a group, verified. Raises Missing saying how many are not stored."""
        found, absent = [], 0
        if not self.groups.get(group):
            raise Missing(f"no runs of {group!r} at {self.profile}")
        for spec in self.groups[group]:
            try:
                found.append(self.source.read(spec.id))
            except KeyError:
                absent += 1
        if absent:
            raise Missing(f"{absent} of {len(self.groups[group])} runs of {group!r} at {self.profile}")
        return tuple(found)

    def restricted(self, groups: Groups) -> Evidence:
        """The same evidence seen through some of its groups."""
        return Evidence(self.source, groups, self.profile)

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
    frame: Callable[[Evidence], pd.DataFrame] | None = None  # what is drawn, a row per value


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
