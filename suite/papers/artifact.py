"""A table, figure, algorithm or equation of a paper: the runs it needs, what it measures, how it is drawn.

Nothing here imports torch, numpy or matplotlib: ``list``, ``plan`` and ``check`` must start fast. Modules that
define artifacts import numpy and pandas inside the functions that compute, matplotlib inside those that draw.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from suite.claims.estimate import Estimate
from suite.claims.judge import PROFILES
from suite.experiment import Experiment
from suite.runs.archive import Runs, versions
from suite.runs.store import Run
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Groups = Mapping[str, tuple[RunSpec, ...]]


class Missing(Exception):
    """Runs that a quantity or a drawing needs are not stored; ``rows`` says what each of several quantities lacks."""

    def __init__(self, what: str, rows: Mapping[str, str] | None = None):
        super().__init__(what)
        self.rows = dict(rows or {})


class Read:
    """Which runs were handed out, and what was read of each since the last look: names of results, or nothing."""

    def __init__(self) -> None:
        self.given: dict[str, Run] = {}
        self._since: dict[str, set[str]] = {}

    def note(self, run_id: str, *results: str) -> None:
        self._since.setdefault(run_id, set()).update(results)

    def taken(self) -> dict[str, set[str]]:
        """What was read since the last call."""
        since, self._since = self._since, {}
        return since


class Results(dict[str, Any]):
    """Results of a run that tell which of them are read."""

    def __init__(self, values: Mapping[str, Any], note: Callable[[str], None]):
        super().__init__(values)
        self._note = note

    def __getitem__(self, name: str) -> Any:
        self._note(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._note(name)
        return super().get(name, default)


class ReadRun(Run):
    """A run that tells ``reads`` when its specification, machine, results or tables are read."""

    def __init__(self, run: Run, reads: Read):
        super().__init__(run.id, run.files)
        self.__dict__ |= {"reads": reads, "told": run}

    def __getattribute__(self, name: str) -> Any:
        if name in ("files", "spec", "environment", "outcome") and (reads := self.__dict__.get("reads")):
            reads.note(self.__dict__["id"])
            return getattr(self.__dict__["told"], name)  # parsed once for all who read it
        return super().__getattribute__(name)

    @property
    def results(self) -> dict[str, Any]:
        reads = self.__dict__["reads"]
        reads.note(self.id)
        return Results(self.__dict__["told"].results, lambda name: reads.note(self.id, name))

    def curve(self, name: str) -> pd.DataFrame:
        self.__dict__["reads"].note(self.id)
        table: pd.DataFrame = self.__dict__["told"].curve(name)
        return table


def plain(run: Run) -> Run:
    """The run behind one that tells what is read of it."""
    told: Run = run.__dict__.get("told", run)
    return told


class Evidence:
    """The stored runs of one artifact at one profile, by the names its ``runs`` function gave them.

    ``reads`` records what is read of them, from which a quantity's grade is derived.
    """

    def __init__(self, source: Runs, groups: Groups, profile: str):
        self.source, self.groups, self.profile = source, groups, profile
        self.reads = Read()
        self.versions: dict[str, list[Run]] = {}  # runs that the source holds more than once
        self._found: dict[str, tuple[Run, ...]] = {}  # by group: many measures ask for the same

    def runs(self, group: str) -> tuple[Run, ...]:
        """All runs of a group, verified. Raises Missing saying how many are not stored."""
        if group in self._found:
            return self._found[group]
        found, absent = [], 0
        if not self.groups.get(group):
            raise Missing(f"no runs of {group!r} at {self.profile}")
        for spec in self.groups[group]:
            try:
                run = self.stored(spec)
            except KeyError:
                absent += 1
                continue
            self.reads.given[spec.id] = run
            found.append(ReadRun(run, self.reads))
        if absent:
            planned = len(self.groups[group])
            raise Missing(f"{absent} of {planned} runs of {group!r} at {self.profile} {are(absent)} missing")
        self._found[group] = tuple(found)
        return self._found[group]

    def stored(self, spec: RunSpec) -> Run:
        """The stored run of a specification, the first of several versions. Raises KeyError where there is none."""
        run, *others = versions(self.source, spec.id)
        if others:
            self.versions[spec.id] = [run, *others]
        return run

    def restricted(self, groups: Groups) -> Evidence:
        """The same evidence seen through some of its groups."""
        part = Evidence(self.source, groups, self.profile)
        part.reads, part.versions = self.reads, self.versions
        return part

    def run(self, group: str) -> Run:
        """The only run of a group."""
        (run,) = self.runs(group)
        return run


def are(count: int) -> str:
    return "is" if count == 1 else "are"


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


Quantities = Iterable[tuple[str, Estimate]]
Measure = Callable[[Evidence], Quantities]


def row_by_row(rows: Iterable[tuple[str, Callable[[], Estimate]]]) -> Quantities:
    """Each quantity whose runs are stored; a Missing at the end says what the others lack."""
    lacking, count = dict[str, str](), 0
    for name, measure in rows:
        count += 1
        try:
            value = measure()
        except Missing as error:
            lacking[name] = str(error)
        else:
            yield name, value
    if lacking:
        raise Missing(f"{len(lacking)} of {count} rows lack their runs", lacking)


def no_runs(profile: str) -> Groups:
    """For artifacts decided by arithmetic alone."""
    return {}


@dataclass(frozen=True)
class Artifact:
    """``measures`` yield (quantity, Estimate); each stops at the first Missing without hindering the others.

    ``draw`` fills a figure from the evidence; None where the claims table says all there is to see. ``runs`` is asked
    once for each profile, since every specification it makes is frozen and hashed; nobody changes what it returned.
    """

    id: str
    title: str
    runs: Callable[[str], Groups] = no_runs
    measures: tuple[Measure, ...] = ()
    draw: Callable[[Evidence, Figure], None] | None = None
    alt: str = ""  # what the drawing shows, for readers who cannot see it
    size: tuple[float, float] = (6.4, 4.0)  # inches
    frame: Callable[[Evidence], pd.DataFrame] | None = None  # what is drawn, a row per value

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", cache(self.runs))

    def specs(self, *profiles: str) -> dict[str, RunSpec]:
        """By id the runs that it asks for at these profiles; at all of them without a name."""
        asked = (specs for name in profiles or PROFILES for specs in self.runs(name).values())
        return {spec.id: spec for specs in asked for spec in specs}

    def ids(self, *profiles: str) -> set[str]:
        """Ids of those."""
        return set(self.specs(*profiles))

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
            f"a paper cannot be called {name!r}; take a short name of small letters, digits and underscores that "
            f"begins with a letter, such as {_suggested(name)!r}"
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
