"""A table, figure, algorithm or equation of a paper: the runs it needs, what it measures, how it is drawn.

The runs of an artifact are read once into a :class:`Frame`, a row for each run that the artifact asks for. A quantity
is a function of the frame that declares the groups of runs it reads. It is handed these and nothing else, so what a
number rests on is what it declared::

    FIG5 = Artifact("rudra/fig5", "Test error with and without dividing the rate", runs)

    @FIG5.quantity("n30-diverges", groups=["alpha0"], seeds=FIRST)
    def extremes(frame):
        errors = frame.table("evaluations")["test_error"]
        return [100 * errors.min(), 100 * errors.max()]

    @FIG5.drawing
    def draw(frame, figure): ...

A test of a quantity makes a frame by hand and compares with the answer that is known.

Nothing here imports torch, numpy or matplotlib: ``list``, ``plan`` and ``check`` must start fast. Modules that
define artifacts import numpy and pandas inside the functions that compute, matplotlib inside those that draw.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from itertools import takewhile
from operator import itemgetter
from typing import Any

from suite.claims.estimate import Estimate, Value, over_seeds
from suite.claims.judge import PROFILES
from suite.experiment import Experiment, RunSpec
from suite.lazy import Figure, pd
from suite.runs.archive import Runs
from suite.runs.run import Run, UnusableRun

Groups = Mapping[str, tuple[RunSpec, ...]]


class Missing(Exception):
    """Runs that a quantity or a drawing needs are not stored."""


run_of = itemgetter("run")  # of a row, "" where it is not stored
ALL, FIRST, STORED = "all", "first", "stored"  # seeds of a group: every one, those before the first missing, any


@dataclass(frozen=True)
class Frame:
    """Runs of an artifact at one profile.

    Attributes:
        rows: one per run that is asked for, in the order of the plan, by ``group``, ``seed``, ``run`` (the id, ""
            where the run is not stored), ``fault`` (why a stored run cannot be used), and of a stored one by
            ``status`` and the names of results.
        profile: the profile that asks for them.
        stored: the stored runs by id.
        read: ids of the runs that were read of it.
        versions: by id, the runs that the source holds more than once.
    """

    rows: Sequence[Mapping[str, Any]]
    profile: str = ""
    stored: Mapping[str, Run] = field(default_factory=dict)
    read: set[str] = field(default_factory=set, compare=False)
    versions: Mapping[str, list[Run]] = field(default_factory=dict, compare=False)

    @cached_property
    def groups(self) -> dict[str, list[Mapping[str, Any]]]:
        """The rows of every group, in the order of the plan."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for row in self.rows:
            found.setdefault(row["group"], []).append(row)
        return found

    @property
    def ids(self) -> list[str]:
        """The id of the run of every row, "" where it is not stored."""
        return list(map(run_of, self.rows))

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The rows as a table, a column for each name."""
        return pd.DataFrame(self.rows) if self.rows else pd.DataFrame(columns=["group", "seed", "run", "fault"])

    def __getitem__(self, group: str) -> pd.DataFrame:
        """The stored runs of a group, a row each. Raises UnusableRun for one that is damaged."""
        self.results(group)
        return self.runs[(self.runs["group"] == group) & (self.runs["run"] != "")]

    def results(self, group: str) -> list[Mapping[str, Any]]:
        """The rows of a group's stored runs, in the order of its seeds. Raises UnusableRun for a damaged one."""
        found = list(filter(run_of, self.groups.get(group, ())))
        refuse_damaged(found)
        self.read.update(map(run_of, found))
        return found

    def runs_of(self, group: str) -> list[Run]:
        """The stored runs of a group, in the order of its seeds. Raises UnusableRun for one that is damaged."""
        return [self.stored[row["run"]] for row in self.results(group)]

    def one(self, group: str) -> Mapping[str, Any]:
        """The row of a group's only run. Raises Missing where it is not stored."""
        (row,) = self.needed([group]).results(group)
        return row

    def run(self, group: str) -> Run:
        """The only run of a group. Raises Missing where it is not stored."""
        (found,) = self.needed([group]).runs_of(group)
        return found

    def whole(self, group: str) -> bool:
        """Whether the group has runs, and all of them are stored."""
        return group in self.groups and all(map(run_of, self.groups[group]))

    def table(self, name: str, *groups: str) -> pd.DataFrame:
        """A table of the runs of these groups (of all, without names), with the columns group, seed and run.

        Raises Missing where none of them is stored.
        """
        tables = [
            self.stored[row["run"]].curve(name).assign(group=group, seed=row["seed"], run=row["run"])
            for group in groups or self.groups
            for row in self.results(group)
        ]
        if not tables:
            raise Missing(f"no run{' of ' if groups else ''}{', '.join(groups)} is stored at {self.profile}")
        return pd.concat(tables, ignore_index=True)

    def needed(self, groups: Iterable[str], seeds: str = ALL, beside: Sequence[str] = ()) -> Frame:
        """The runs of these groups alone, with those ``beside`` them if all of these are stored.

        Raises Missing where a run that is needed is not stored, UnusableRun where one is damaged.
        """
        groups, keep, lacking = list(groups), list[Mapping[str, Any]](), list[str]()
        for group in groups:
            rows = self.groups.get(group, [])
            first = list(filter(run_of, rows) if seeds == STORED else takewhile(run_of, rows))
            if not first:
                lacking.append(f"no run of {group} at {self.profile}")
            elif seeds == ALL and len(first) < len(rows):
                absent = sum(not row["run"] for row in rows)
                lacking.append(f"{absent} of {len(rows)} runs of {group} at {self.profile} are missing")
            keep += first
        if lacking:
            refuse_damaged(row for group in groups for row in self.groups.get(group, ()))
            more = f", and of {len(lacking) - 1} other group{'s' if lacking[2:] else ''}" if lacking[1:] else ""
            raise Missing(lacking[0] + more)
        others = [row for group, rows in self.groups.items() if group in beside for row in rows]
        if all(map(run_of, others)):
            keep += others
        refuse_damaged(keep)
        return replace(self, rows=keep)

    def refuse_skipped(self, group: str) -> None:
        """Raise Missing, with the reason, where a run of the group found no lab to run in."""
        for row in self.results(group):
            if reason := row["skipped"]:
                raise Missing(f"no lab could be made for {group}: {reason}")


def refuse_damaged(rows: Iterable[Mapping[str, Any]]) -> None:
    """Raise UnusableRun where the run of one of these rows is damaged."""
    for row in rows:
        if row["fault"] is not None:
            raise row["fault"]


def read_frame(source: Runs, groups: Groups, profile: str) -> Frame:
    """The frame of what a source holds of the runs of these groups; of several versions of a run the first."""
    rows: list[dict[str, Any]] = []
    stored: dict[str, Run] = {}
    several: dict[str, list[Run]] = {}
    for group, specs in groups.items():
        for spec in specs:
            row: dict[str, Any] = {"run": "", "fault": None}
            try:
                held = source.versions(spec.id)
                if len(held) > 1:
                    several[spec.id] = held
                run = stored[spec.id] = held[0]
                row = {**run.results, "status": run.status, "run": run.id, "fault": None}
            except KeyError:
                pass
            except UnusableRun as error:
                row = {"run": spec.id, "fault": error}
            rows.append(row | {"group": group, "seed": spec.seed})
    return Frame(rows, profile, stored, versions=several)


@dataclass(frozen=True)
class Quantity:
    """What an artifact measures.

    Attributes:
        value: the function of the frame of ``groups``.
        groups: the groups of runs that it reads, or a function of the whole frame that chooses them by what is
            stored.
        seeds: ALL, FIRST or STORED.
        beside: groups of other artifacts that it reads where all of their runs are stored.
        note: what stands beside the number, or a function of the frame that says it.
        shown: whether the number is shown beside the claim without deciding it, or a function of the frame that says
            so.
    """

    value: Callable[[Frame], Value]
    groups: tuple[str, ...] | Callable[[Frame], Iterable[str]] = ()
    seeds: str = ALL
    beside: tuple[str, ...] = ()
    note: str | Callable[[Frame], str] = ""
    shown: bool | Callable[[Frame], bool] = False

    def needs(self, frame: Frame) -> Frame:
        """The part of a frame that it reads. Raises Missing."""
        groups = self.groups(frame) if callable(self.groups) else self.groups
        return frame.needed(groups, self.seeds, self.beside)

    def of(self, frame: Frame) -> Estimate:
        """The number with its interval, from the part of a frame that it needs. Raises Missing."""
        return self.measured(self.needs(frame))

    def measured(self, part: Frame) -> Estimate:
        """The number with its interval, from the part of the frame that it needs."""
        own = [row["run"] for row in part.rows if row["group"] not in self.beside]
        value = self.value(part)  # first: the note of a number that is missing may not be made
        note = self.note if isinstance(self.note, str) else self.note(part)
        shown = self.shown if isinstance(self.shown, bool) else self.shown(part)
        return over_seeds(value, dict.fromkeys(own), note, proxy=shown)


@dataclass(eq=False)
class Artifact:
    """What is measured and drawn from one frame.

    Attributes:
        id: its paper, a slash, and its own name.
        title: in a line.
        runs: by profile, the groups of runs that it asks for; none where arithmetic alone decides. Asked once for
            each profile, since every specification it makes is frozen and hashed; nobody changes what it returned.
        draw: fills a figure from the frame; None where the claims table says all there is to see.
        alt: what the drawing shows, for readers who cannot see it; of a decorated function its docstring.
        size: of the drawing, in inches.
        frame: makes the table of what is drawn, a row per value.
        beside: by profile, runs of other artifacts, read where they are stored.
        quantities: what it measures, by name.
        more: a function of the frame for quantities whose names hang on what is planned or stored.
    """

    id: str
    title: str
    runs: Callable[[str], Groups] = field(default=lambda profile: {})
    draw: Callable[[Frame, Figure], None] | None = None
    alt: str = ""
    size: tuple[float, float] = (6.4, 4.0)
    frame: Callable[..., pd.DataFrame] | None = None
    beside: Callable[[str], Groups] = field(default=lambda profile: {})
    quantities: dict[str, Quantity] = field(default_factory=dict)
    more: Callable[[Frame], Mapping[str, Quantity]] = field(default=lambda frame: {})

    def __post_init__(self) -> None:
        for name in ("runs", "ids", "reads", "alike"):
            setattr(self, name, cache(getattr(self, name)))

    def specs(self, *profiles: str) -> dict[str, RunSpec]:
        """By id the runs that it asks for at these profiles; at all of them without a name."""
        asked = [self.runs(name) for name in profiles or PROFILES]
        return {spec.id: spec for groups in asked for specs in groups.values() for spec in specs}

    def ids(self, *profiles: str) -> frozenset[str]:
        """Ids of those."""
        return frozenset(self.specs(*profiles))

    def reads(self, profile: str) -> frozenset[str]:
        """Ids of the runs that it reads at a profile, those beside its own too."""
        return self.ids(profile).union(spec.id for specs in self.beside(profile).values() for spec in specs)

    def alike(self, profile: str) -> str:
        """The largest profile that asks for the same runs."""
        return next(other for other in reversed(PROFILES) if self.runs(other) == self.runs(profile))

    @property
    def shows(self) -> str:
        """What the drawing shows, in words."""
        return self.alt or self.title

    def read(self, source: Runs, profile: str, groups: Groups | None = None) -> Frame:
        """The frame of what is stored of its runs at a profile, or of these in their place, and of those beside."""
        return read_frame(
            source, {**self.beside(profile), **(self.runs(profile) if groups is None else groups)}, profile
        )

    def quantity(
        self, name: str, groups: Iterable[str] | Callable[[Frame], Iterable[str]] = (), **about: Any
    ) -> Callable[[Any], Any]:
        """Decorator: the function measures this quantity. See :class:`Quantity` for what else may be said of it."""

        def add(value: Callable[[Frame], Value]) -> Callable[[Frame], Value]:
            self.quantities[name] = Quantity(value, groups if callable(groups) else tuple(groups), **about)
            return value

        return add

    def drawing(self, function: Callable[[Frame, Figure], None]) -> Callable[[Frame, Figure], None]:
        """Decorator: the function fills a figure from the frame, and its docstring says what the drawing shows."""
        self.draw, self.alt = function, self.alt or " ".join((function.__doc__ or "").split())
        return function

    def table(self, function: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
        """Decorator: the function makes the table of what is drawn."""
        self.frame = function
        return function


def artifacts_of(package: str, *modules: str) -> tuple[Artifact, ...]:
    """The artifacts that modules of a package name, in the order of the modules and of their lines."""
    found = [vars(import_module(f"{package}.{module}")) for module in modules]
    return tuple(dict.fromkeys(each for names in found for each in names.values() if isinstance(each, Artifact)))


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
        return {artifact.id: artifact for artifact in self.artifacts}[artifact_id]
