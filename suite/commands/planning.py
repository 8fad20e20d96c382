"""The runs of a selection, what they cost and need, and which come first when time is short: those of the artifacts
that decide most claims per second. Imports neither torch nor numpy."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import NamedTuple

from suite.claims.judge import ON_A_CPU, PROFILES, Claim
from suite.clock import counted, duration
from suite.commands.options import RunOptions
from suite.data.catalogue import DataError, available
from suite.files import write_whole
from suite.papers.artifact import Artifact, Frame, Missing, Paper
from suite.papers.catalogue import SelectorError, committed_ids, experiment, published
from suite.runner import calibration
from suite.runner.calibration import Calibration
from suite.runs.store import Store
from suite.spec import RunSpec, canonical, trainings
from suite.tables import likely
from suite.training.numerics import pick_device
from suite.training.settings import check_run

Selection = list[tuple[Paper, list[Artifact]]]


@dataclass(frozen=True)
class Planned:
    """One run of a plan: estimated seconds on one core, peak bytes, data sets, artifacts that want it.

    ``group`` is the name under which the first of these artifacts draws it.
    """

    spec: RunSpec
    seconds: float
    memory: int
    data: tuple[str, ...]
    artifacts: tuple[str, ...]
    group: str = ""


def plan(selection: Selection, profile: str, seeds: int | None = None, only: str | None = None) -> list[Planned]:
    """All runs of the selected artifacts at a profile, each once; of every group the first ``seeds`` alone.

    ``only`` is a name or glob of groups. Raises SelectorError where there is none of it, ValueError for settings that
    no run could have.
    """
    wanted: dict[str, tuple[RunSpec, str, list[str]]] = {}
    groups = [(a.id, *each) for _, artifacts in selection for a in artifacts for each in a.runs(profile).items()]
    chosen = [each for each in groups if only is None or only == each[1] or fnmatchcase(each[1], only)]
    if groups and not chosen:
        known = likely(repr(only), {repr(group) for _, group, _ in groups})
        raise SelectorError(f"no group of runs is called {only!r} at {profile}; {known}")
    for artifact, group, specs in chosen:
        for spec in first_seeds(specs, seeds):
            wanted.setdefault(spec.id, (spec, group, []))[2].append(artifact)
    planned = []
    for spec, group, users in wanted.values():
        kind = experiment(spec.experiment)
        try:
            check_run(spec, kind.settings)
            cost = kind.seconds(spec), kind.memory(spec), kind.data(spec)
        except ValueError as error:
            raise ValueError(f"{users[0]}, {group!r}: {error}") from None
        planned.append(Planned(spec, *cost, tuple(dict.fromkeys(users)), group))
    return planned


def first_seeds(specs: Sequence[RunSpec], count: int | None) -> list[RunSpec]:
    """Those of a group's runs that have one of its first ``count`` seeds; all of them for None."""
    kept = tuple(dict.fromkeys(spec.seed for spec in specs))[:count]
    return [spec for spec in specs if spec.seed in kept]


def calibrated(planned: Iterable[Planned], machine: Calibration | None) -> list[Planned]:
    """The plan with its seconds as this machine was measured to take them; unchanged without a calibration."""
    if machine is None:
        return list(planned)
    return [replace(item, seconds=item.seconds * machine.factor(item.spec)) for item in planned]


def calibrate(planned: Iterable[Planned], store: Path, device: str, data: Path | None, seconds: float) -> Calibration:
    """Time pieces of a plan's runs here for about ``seconds``, and keep the result in the store.

    Imports torch. Raises ValueError for a device that is not there, StoreError where no store can be made.
    """
    Store(store, create=True)
    on, specs = pick_device(device), [item.spec for item in planned]
    timed = partial(calibration.pilot_run, experiment, on, data)
    note = partial(print, file=sys.stderr)
    made = calibration.calibrate(specs, experiment, on, seconds, timed, calibration.host_seconds, note=note)
    calibration.keep(store, made)
    return made


def missing_data(planned: Iterable[Planned], root: Path | None) -> dict[str, str]:
    """Data sets that the plan needs and that are not there, with the reason."""
    names = {name for item in planned for name in item.data}
    return {name: why for name in sorted(names) for ok, why in [available(name, root)] if not ok}


def lacking_data(missing: Mapping[str, str]) -> list[str]:
    """Missing data sets as text, by name and reason: how to get one; of several the names, and where that stands."""
    if len(missing) > 1:
        return [f"missing: {', '.join(missing)}; `sgd-suite data list` says of each how to get it"]
    return [f"missing: {why}" for why in missing.values()]


class Chosen(NamedTuple):
    """The plan of a call: all runs that have their data, and of these the ones that it takes."""

    plan: list[Planned]
    mine: list[Planned]
    stored: Collection[str]
    lacking: int  # left out without their data
    beyond: int  # left out for want of memory
    shipped: int  # left out since the suite comes with them
    empty: bool  # the selection has no runs at the profile


def choose(selection: Selection, options: RunOptions) -> Chosen:
    """The runs to compute.

    Runs whose data set is missing are left out of several artifacts, or with a budget, and a line on stderr names the
    data sets. Raises DataError for one elsewhere, and where nothing remains.
    """
    store, memory = options.store, options.memory
    whole = calibrated(plan(selection, options.profile, options.seeds, options.only), calibration.known(store))
    every = len(whole)
    if options.missing:
        shipped = committed_ids()
        whole = [p for p in whole if p.spec.id not in shipped]
    mine = share_of(whole, options.share)
    fitting = [p for p in mine if memory is None or p.memory <= memory]
    stored = Store(store).ids() if (store / "runs").is_dir() else set[str]()

    # Runs without their data, of the whole plan and of what this call takes.
    left = [p for p in whole if p.spec.id not in stored]
    missing = missing_data(left, options.data)
    absent = {p.spec.id for p in left if not missing.keys().isdisjoint(p.data)}
    lacking = [p for p in fitting if p.spec.id in absent]
    wanted = {name: why for name, why in missing.items() if any(name in p.data for p in lacking)}
    leave_out = options.budget is not None or sum(len(artifacts) for _, artifacts in selection) > 1
    if wanted and (not leave_out or len(absent) == len(whole)):
        name, why = next(iter(wanted.items()))
        raise DataError(f"profile {options.profile} needs the data set {name}: {why}")
    for line in lacking_data(wanted):
        print(f"{counted(len(lacking), 'run')} left out, {line}", file=sys.stderr)
    taken = [p for p in fitting if p.spec.id not in absent]
    check_trainings(p for p in taken if p.spec.id not in stored)
    return Chosen(
        plan=[p for p in whole if p.spec.id not in absent],
        mine=taken,
        stored=stored,
        lacking=len(lacking),
        beyond=sum(memory is not None and p.memory > memory and p.spec.id not in stored for p in mine),
        shipped=every - len(whole),
        empty=not every,
    )


def check_trainings(planned: Iterable[Planned]) -> None:
    """Build the parts of every training, so that none fails at its turn. Raises ValueError; imports torch."""
    named = {"algorithm", "batch", "data", "descent", "model"}  # by the harness's own trainings
    stages = [(item, stage) for item in planned for stage in trainings(item.spec) if named <= stage.settings.keys()]
    for item, stage in {canonical(stage.settings): (item, stage) for item, stage in stages}.values():
        from suite.training.build import check_parts

        try:
            check_parts(stage.settings)
        except ValueError as error:
            raise ValueError(f"{item.artifacts[0]}, {item.group!r}: {error}") from None


def share_of(planned: Sequence[Planned], share: tuple[int, int] | None) -> list[Planned]:
    """The i-th of n parts (i from 0) of about equal cost; the same on every machine. All of it without a share."""
    ordered = sorted(planned, key=lambda p: (-p.seconds, p.spec.id))
    return ordered if share is None else ordered[share[0] :: share[1]]


def keep_wanted(store: Store, planned: Sequence[Planned], selectors: Sequence[str], profile: str) -> None:
    """Leave the plan in the store, so that ``status`` knows what is still to come."""
    runs = {p.spec.id: {"artifact": p.artifacts[0], "seconds": p.seconds} for p in planned}
    name = hashlib.sha256(canonical([sorted(selectors), profile]).encode()).hexdigest()[:12]
    (store.root / "wanted").mkdir(exist_ok=True)
    write_whole(store.root / "wanted" / f"{profile}-{name}.json", json.dumps(runs).encode())


SHORTEST = 0.1  # seconds; what takes less is as good as free


def decidable(claim: Claim, artifact: Artifact, profile: str, device: str, have: Collection[str]) -> bool:
    """Whether an artifact's runs at a profile, on this device, decide a claim that ``have`` (run ids) leaves open."""
    if claim.lacks or claim.needs not in (*ON_A_CPU, *(("gpu",) if device == "cuda" else ())):
        return False
    if PROFILES.index(claim.profile) > PROFILES.index(profile):
        return False
    return not read_by(claim, artifact) <= set(have)


def read_by(claim: Claim, artifact: Artifact) -> Set[str]:
    """Ids of the runs that a claim reads once all of its artifact are stored; of all where their results choose."""
    rows = [
        {"group": group, "seed": spec.seed, "run": spec.id, "fault": None}
        for group, specs in artifact.runs(claim.profile).items()
        for spec in specs
    ]
    try:
        return set(artifact.quantities[claim.quantity].needs(Frame(rows, claim.profile)).ids)
    except (KeyError, Missing):  # a quantity that hangs on what is stored, or runs that are not planned here
        return artifact.ids(claim.profile)


@dataclass(frozen=True)
class Stage:
    """What one artifact still needs when those before it are computed, and the claims that this decides.

    ``whole``: whether no run of the artifact is left out of the plan.
    """

    artifact: str
    claims: tuple[str, ...]
    runs: tuple[Planned, ...]
    whole: bool = True

    def seconds(self, workers: int) -> float:
        """With so many runs side by side, and nothing to wait for but the longest."""
        costs = [run.seconds for run in self.runs]
        return max(sum(costs) / workers, *costs)


def ranked(
    selection: Selection, planned: Sequence[Planned], profile: str, device: str, have: Collection[str] = ()
) -> list[Stage]:
    """The runs of a plan that are not in ``have``, in stages, the most valuable first.

    The artifact comes next that decides most of its claims per estimated second of the runs it adds to those before
    it. What decides no open claim comes last, and cheap before dear.
    """
    left = {item.spec.id: item for item in planned if item.spec.id not in have}
    all_ids = left.keys() | set(have)
    wanting = []
    for paper, artifacts in selection:
        for artifact in artifacts:
            own = [claim for claim in published(paper.name) if claim.artifact == artifact.id]
            wanting.append((artifact, [each for each in own if decidable(each, artifact, profile, device, have)]))
    users = {artifact.id: [p for p in planned if artifact.id in p.artifacts] for artifact, _ in wanting}
    made = []
    while wanting:

        def worth(entry: tuple[Artifact, list[Claim]]) -> tuple[float, float]:
            artifact, claims = entry
            seconds = max(sum(p.seconds for p in users[artifact.id] if p.spec.id in left), SHORTEST)
            return len(claims) / seconds, -seconds

        best = max(wanting, key=worth)
        wanting.remove(best)
        artifact, claims = best
        runs = [left.pop(p.spec.id) for p in users[artifact.id] if p.spec.id in left]
        if runs:
            runs.sort(key=lambda p: (p.seconds, p.spec.id))
            whole = artifact.ids(profile) <= all_ids
            made.append(Stage(artifact.id, tuple(claim.id for claim in claims), tuple(runs), whole))
    return made


def within(made: Sequence[Stage], budget: float, workers: int) -> tuple[list[Stage], list[Stage]]:
    """Stages in their order that fit into so many seconds, one after another, and those that do not."""
    passed = 0.0
    fitting: list[Stage] = []
    rest: list[Stage] = []
    for stage in made:
        fits = passed + stage.seconds(workers) <= budget
        passed += stage.seconds(workers) if fits else 0.0
        (fitting if fits else rest).append(stage)
    return fitting, rest


def deciding(made: Sequence[Stage], budget: float, workers: int) -> list[Stage]:
    """Those of the stages that decide claims and fit into so many seconds, with ``workers`` runs side by side."""
    return within([each for each in made if each.claims and each.whole], budget, workers)[0]


def forecast(made: Sequence[Stage], budget: float, workers: int) -> list[str]:
    """As text, stage by stage: what those that are ``deciding`` decide, and when."""
    passed, text, decided = 0.0, [], 0
    for stage in made:
        passed += stage.seconds(workers)
        decided += len(stage.claims)
        names = ", ".join(claim.rpartition("/")[2] for claim in stage.claims)
        text.append(f"{duration(passed):>12}  {stage.artifact}: {counted(len(stage.runs), 'run')} to decide {names}")
    side = f"{workers} runs side by side" if workers > 1 else "one run after another"
    decides = f"{counted(decided, 'claim')} by {counted(len(text), 'artifact')}"
    return [f"in {duration(budget)} with {side}: {decides}", *text]
