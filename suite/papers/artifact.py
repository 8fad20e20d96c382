"""A table, figure, algorithm or equation of a paper: the runs it needs, what it measures, how it is drawn.

Nothing here imports torch, numpy or matplotlib: ``list``, ``plan`` and ``check`` must start fast. Modules that
define artifacts import numpy and pandas inside the functions that compute, matplotlib inside those that draw.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache

from suite.claims.judge import PROFILES
from suite.experiment import Experiment
from suite.lazy import Figure, pd
from suite.runs.archive import Runs, versions
from suite.runs.store import Run
from suite.spec import RunSpec

Groups = Mapping[str, tuple[RunSpec, ...]]


class Missing(Exception):
    """Runs that a quantity or a drawing needs are not stored."""


class Evidence:
    """The stored runs of one artifact at one profile, by the names its ``runs`` function gave them.

    Attributes:
        read: ids of the runs that were read of it.
        versions: by id, the runs that the source holds more than once.
    """

    def __init__(self, source: Runs, groups: Groups, profile: str):
        self.source, self.groups, self.profile = source, groups, profile
        self.read: set[str] = set()
        self.versions: dict[str, list[Run]] = {}

    def stored(self, spec: RunSpec) -> Run:
        """The stored run of a specification, the first of several versions. Raises KeyError where there is none."""
        run, *others = versions(self.source, spec.id)
        if others:
            self.versions[spec.id] = [run, *others]
        return run


@dataclass(frozen=True)
class FewSeeds:
    """An artifact's runs at one profile, restricted to the seeds that are stored; as text, "1 of 5 seeds"."""

    groups: Groups
    stored: int
    planned: int

    def __str__(self) -> str:
        return f"{self.stored} of {self.planned} seeds"


def few_seeds(groups: Groups, ids: Collection[str]) -> FewSeeds | None:
    """The seeds of which every group that was begun has all its runs among ``ids``; None for all of them, or none.

    Groups of one seed, and those of which no seed is whole, stay as they are.
    """
    seeds = {name: dict.fromkeys(spec.seed for spec in specs) for name, specs in groups.items()}
    whole: dict[str, set[int]] = {}
    for name, specs in groups.items():
        absent = {spec.seed for spec in specs if spec.id not in ids}
        if len(seeds[name]) > 1 and (stored := set(seeds[name]) - absent):
            whole[name] = stored
    common = set.intersection(*whole.values()) if whole else set()
    planned = max((len(seeds[name]) for name in whole), default=0)
    if not common or len(common) == planned:
        return None
    part = {name: tuple(s for s in specs if name not in whole or s.seed in common) for name, specs in groups.items()}
    return FewSeeds(part, len(common), planned)


def no_runs(profile: str) -> Groups:
    """For artifacts decided by arithmetic alone."""
    return {}


@dataclass(frozen=True)
class Artifact:
    """``draw`` fills a figure from the evidence; None where the claims table says all there is to see.

    ``runs`` is asked once for each profile, since every specification it makes is frozen and hashed; nobody changes
    what it returned.
    """

    id: str
    title: str
    runs: Callable[[str], Groups] = no_runs
    draw: Callable[[Evidence, Figure], None] | None = None
    alt: str = ""  # what the drawing shows, for readers who cannot see it
    size: tuple[float, float] = (6.4, 4.0)  # inches
    frame: Callable[[Evidence], pd.DataFrame] | None = None  # what is drawn, a row per value

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", cache(self.runs))
        object.__setattr__(self, "ids", cache(self.ids))

    def specs(self, *profiles: str) -> dict[str, RunSpec]:
        """By id the runs that it asks for at these profiles; at all of them without a name."""
        asked = (specs for name in profiles or PROFILES for specs in self.runs(name).values())
        return {spec.id: spec for specs in asked for spec in specs}

    def ids(self, *profiles: str) -> frozenset[str]:
        """Ids of those."""
        return frozenset(self.specs(*profiles))

    @property
    def shows(self) -> str:
        """What the drawing shows, in words."""
        return self.alt or self.title


SHORT_NAME = re.compile(r"[a-z][a-z0-9_]*")


class PaperError(ValueError):
    """A paper whose names cannot be used."""


def check_name(name: str) -> None:
    """Raise PaperError for a short name that cannot stand in ids, file names and Python."""
    if not SHORT_NAME.fullmatch(name) or keyword.iskeyword(name):
        raise PaperError(
            f"no paper and no experiment can be called {name!r}; take a short name of small letters, digits and "
            f"underscores that begins with a letter, such as {_suggested(name)!r}"
        )


def _suggested(name: str) -> str:
    """The nearest name that could be used."""
    found = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_").lstrip("0123456789_")
    return found if SHORT_NAME.fullmatch(found) and not keyword.iskeyword(found) else "lookahead"


@dataclass(frozen=True)
class Paper:
    """A paper's short name, citation, artifacts in the paper's order, own experiments by name, and its address.

    Raises PaperError for names that no selector could mean.
    """

    name: str
    title: str
    citation: str
    artifacts: tuple[Artifact, ...]
    experiments: Mapping[str, Experiment]
    link: str = ""  # where it can be read

    def __post_init__(self) -> None:
        check_name(self.name)
        ids = [artifact.id for artifact in self.artifacts]
        for kind, names in (("artifact", ids), ("experiment", list(self.experiments))):
            for name in names:
                paper, _, rest = name.partition("/")
                if paper != self.name or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", rest):
                    raise PaperError(
                        f"{kind} {name!r} of the paper {self.name!r}: its name must be the paper's, a slash, and one "
                        f"of its own of letters and digits, such as '{self.name}/{_suggested(rest or paper)}'"
                    )
        if twice := [name for name in ids if ids.count(name) > 1]:
            raise PaperError(f"two artifacts of the paper {self.name!r} are called {twice[0]!r}; rename one")

    def artifact(self, artifact_id: str) -> Artifact:
        for artifact in self.artifacts:
            if artifact.id == artifact_id:
                return artifact
        raise KeyError(artifact_id)
