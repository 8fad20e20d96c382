"""The command ``run``: plan, check that it can run, compute, say what became of each run."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from suite.claims.judge import PROFILES
from suite.clock import duration
from suite.commands.plan import Planned, calibrated, missing_data, plan
from suite.commands.plan import stages as by_value
from suite.data.catalogue import DataError
from suite.experiment import CHECKPOINT_SECONDS
from suite.interruption import leave_if_asked, watched
from suite.papers.artifact import Artifact, Paper
from suite.papers.catalogue import experiment
from suite.papers.evidence import committed, with_committed
from suite.runner.calibration import known
from suite.runner.execute import RunnerConfig, execute_all
from suite.runner.packing import NOT_BEGUN
from suite.runner.progress import Progress
from suite.runner.status_file import SILENT, note_in
from suite.runner.trackers import tracker_called
from suite.runs.files import now_in, write_whole
from suite.runs.store import Store
from suite.spec import RunSpec, canonical
from suite.training.numerics import pick_device

LOOK = 0.5  # seconds between two looks at runs that another process is computing


Selection = list[tuple[Paper, list[Artifact]]]


def run_artifacts(
    selection: Selection,
    asked: Sequence[str],
    profile: str,
    store: Path,
    data: Path | None,
    device: str,
    workers: int,
    budget: float | None = None,
    *,
    wait: bool = True,
    share: tuple[int, int] | None = None,
    memory: int | None = None,
    seeds: int | None = None,
    track: str | None = None,
    missing: bool = False,
) -> int:
    """Compute what is not stored; ``asked`` are the words by which the store remembers the plan.

    Returns 0, or 1 when a run failed; raises Interrupted when a signal ended it.

    Runs that another process is computing are waited for, or left to it without ``wait``. ``share`` (i, n) takes the
    i-th of n parts of the plan alone, ``memory`` the runs that need no more bytes, ``seeds`` the first so many of
    each group, ``missing`` those that the suite comes without; ``track`` names the tracker that is told each run it
    stores. Of several artifacts, or with a budget, runs whose data set is missing are left out. With a ``budget``
    (seconds) the order is that of ``suite.commands.plan``, and what the budget does not suffice for is left, with its
    checkpoint, to the next call. Raises ValueError (DataError, StoreError, UnknownName) before anything is computed
    when a data set is missing without which nothing can be, or the store cannot be written.
    """
    tracker = tracker_called(track) if track else None
    deadline = time.monotonic() + budget if budget else None
    whole = calibrated(plan(selection, profile, seeds), known(store))
    if missing and whole:
        shipped = set[str]().union(*(archive.ids() for archive in committed()))
        whole = [p for p in whole if p.spec.id not in shipped]
        if not whole:
            print("nothing to run: the suite comes with all of these runs", file=sys.stderr)
            return 0
    mine = share_of(whole, share)
    planned = [p for p in mine if memory is None or p.memory <= memory]
    stored = Store(store).ids() if (store / "runs").is_dir() else set()
    beyond = sum(memory is not None and p.memory > memory and p.spec.id not in stored for p in mine)
    lacking = without_data(whole, planned, stored, data, profile, leave_out=budget is not None or several(selection))
    left_out = sum(p.spec.id in lacking for p in planned)
    whole, planned = ([p for p in part if p.spec.id not in lacking] for part in (whole, planned))
    names = {p.spec.id: p.artifacts[0] for p in planned}
    weights = {p.spec.id: p.seconds for p in planned}
    updates = {p.spec.id: count for p in planned if (count := p.spec.settings.get("updates"))}
    around = RunnerConfig(
        store=store,
        device=pick_device(device),
        data=data,
        deadline=deadline,
        checkpoint_seconds=checkpoint_seconds(),
    )
    opened = Store(store, create=True)
    keep_wanted(opened, whole, asked, profile)
    stages = None
    if budget:
        have = stored | with_committed(store).ids()
        made = by_value(selection, planned, profile, around.device, have, budget, workers)
        stages = {item.spec.id: place for place, stage in enumerate(made) for item in stage}
    counts: Counter[str] = Counter()
    not_begun = 0
    todo = [p.spec for p in planned]
    with watched(), Progress(weights, updates) as progress:
        while todo:
            busy = []
            reports = execute_all(todo, experiment, around, workers=workers, progress=progress.update, stages=stages)
            for report in reports:
                if report.state == "busy":
                    busy.append(report.spec)
                    progress.update(report.spec.id, 0.0)  # under way elsewhere, as far as is known here
                    continue
                counts[report.state] += 1
                not_begun += report.status == NOT_BEGUN
                line = f"{names[report.spec.id]} {report.spec.id} {report.state} {report.status}".strip()
                computed = report.state in ("stored", "failed")
                untold = report.state == "present" or report.status == NOT_BEGUN
                progress.finish(report.spec.id, "" if untold else line, computed=computed)
                if report.why:
                    progress.note(f"{report.spec.id}: {report.why}")
                if tracker and report.state == "stored":
                    tracker(opened.read(report.spec.id), names[report.spec.id], store / "tracked" / str(track))
            # Who does not wait still looks again: a run may have been let go of since, unfinished.
            if wait:
                todo = _wait(busy, opened, around.late, progress)
            else:
                todo = [spec for spec in busy if not opened.busy(spec.id)]
            counts["late"] += len(busy) - len(todo)
        if not_begun:
            progress.note(f"{not_begun} runs not begun")
        nothing = not whole and not lacking
        print(no_runs(selection, profile) if nothing else ending(counts, left_out, beyond), file=sys.stderr)
        leave_if_asked()
    return 1 if counts["failed"] else 0


def ending(counts: Mapping[str, int], lacking: int, beyond: int) -> str:
    """What became of the runs, by state; how many were left out without their data, or for want of memory."""
    states = {"stored": "runs stored", "present": "already there", "late": "left for later", "failed": "failed"}
    told = [f"{counts[state]} {words}" for state, words in states.items()]
    left_out = {"without their data": lacking, "beyond --memory": beyond}
    return ", ".join([*told, *(f"{count} {words}" for words, count in left_out.items() if count)])


def no_runs(selection: Iterable[tuple[Paper, list[Artifact]]], profile: str) -> str:
    """That a selection has nothing to compute at a profile, and at which it has."""
    artifacts = [artifact for _, chosen in selection for artifact in chosen]
    what = artifacts[0].id if len(artifacts) == 1 else "the selection"
    others = [name for name in PROFILES if any(group for a in artifacts for group in a.runs(name).values())]
    more = f"it has some at {' and '.join(others)}" if others else "nor at another"
    return f"nothing to run: {what} has no runs at {profile}, {more}"


def several(selection: Iterable[tuple[Paper, list[Artifact]]]) -> bool:
    """Whether more than one artifact was selected."""
    return sum(len(artifacts) for _, artifacts in selection) > 1


def without_data(
    whole: Sequence[Planned],
    part: Sequence[Planned],
    stored: Collection[str],
    root: Path | None,
    profile: str,
    *,
    leave_out: bool,
) -> set[str]:
    """Ids of a plan's runs that are neither stored nor have their data here.

    A line on stderr names each data set that runs of this ``part`` lack. Raises DataError for it instead unless they
    may be left out and others of the plan remain.
    """
    left = [p for p in whole if p.spec.id not in stored]
    absent = missing_data(left, root)
    lacking = {p.spec.id for p in left if not absent.keys().isdisjoint(p.data)}
    for name, why in absent.items():
        count = sum(name in p.data for p in part if p.spec.id in lacking)
        if count and (not leave_out or len(lacking) == len(whole)):
            raise DataError(f"profile {profile} needs the data set {name}: {why}")
        if count:
            print(f"{count} runs left out: {why}", file=sys.stderr)
    return lacking


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


def checkpoint_seconds() -> float:
    """Seconds between checkpoints: SGD_SUITE_CHECKPOINT_SECONDS, or the default. Raises ValueError."""
    text = os.environ.get("SGD_SUITE_CHECKPOINT_SECONDS", str(CHECKPOINT_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise ValueError(f"SGD_SUITE_CHECKPOINT_SECONDS={text!r} must be a number of seconds, zero or more")
    return seconds


def _wait(busy: list[RunSpec], store: Store, late: Callable[[], bool], progress: Progress) -> list[RunSpec]:
    """Wait until another process lets go of one of its runs; returns all of them, or none once it is ``late``."""
    if busy:
        progress.note(f"waiting for {len(busy)} runs that another process is computing")
    named: set[str] = set()
    while busy and all(store.busy(spec.id) for spec in busy):
        if late():
            return []
        for spec in busy:
            if spec.id not in named and (silent := silent_holder(store, spec.id)):
                named.add(spec.id)
                progress.note(f"waiting for {spec.id}: {silent}; end it, or leave its runs to it with --no-wait")
        time.sleep(LOOK)
    return busy


def silent_holder(store: Store, run_id: str) -> str:
    """Which process computes a run, and for how long it has given no sign of life; empty while it gives them."""
    notes = [note for folder in store.partial(run_id).glob("*") if (note := note_in(folder))]
    if not notes:
        return ""
    last = max(notes, key=lambda note: note["seen"])
    try:
        silence = now_in(store.root / "staging") - last["seen"]
    except OSError:
        return ""
    where = f"pid {last['pid']} on {last['host']}" + (f" in job {last['job']}" if last["job"] else "")
    return f"{where}, silent for {duration(silence)}" if silence >= SILENT else ""
