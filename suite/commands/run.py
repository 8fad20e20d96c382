"""Compute and store the runs of a selection, here or by an engine; what is stored is not computed again."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from suite.claims.judge import PROFILES
from suite.clock import counted, duration
from suite.commands import options, planning
from suite.commands.options import Request, RunOptions
from suite.commands.planning import Chosen, Planned, Selection, choose, keep_wanted
from suite.engines import ENGINES, INDEX, Engine, EngineError, Job
from suite.experiment import CHECKPOINT_SECONDS, RunSpec
from suite.files import now_in, write_whole
from suite.interruption import leave_if_asked, watched
from suite.papers.catalogue import experiment, select, with_committed
from suite.runner.execute import RunnerConfig, execute_all
from suite.runner.progress import Progress
from suite.runner.status_file import SILENT, note_in
from suite.runner.trackers import tracker_called
from suite.runner.workers import NOT_BEGUN, RunReport
from suite.runs.lease import lease_seconds
from suite.runs.store import Store
from suite.training.numerics import pick_device

LOOK = 0.5  # seconds between two looks at runs that another process is computing
MOST_JOBS = 16  # unless --jobs says otherwise
STEP = 2**30  # bytes of memory: groups differ by powers of two of it
NODE_LOCAL, EXPORTS = "node_local", "exports"  # options that are ours, whatever the engine
LOOK_AT_JOBS = 10.0  # seconds between two looks of --wait
WATCHED = 1.5  # times its length that a lease which looks forsaken is watched


def command(
    selector: options.Selectors = None,
    *,
    profile: options.ProfileOption,
    store: options.StoreOption = options.STORE,
    data: options.DataOption = None,
    device: options.DeviceOption = options.Device.auto,
    workers: options.Workers = 1,
    budget: options.Budget = None,
    no_wait: options.NoWait = False,
    share: Annotated[str | None, typer.Option(help="only part I of N of the plan, I from 0", metavar="I/N")] = None,
    memory: options.Memory = None,
    seeds: options.Seeds = None,
    only: options.Only = None,
    missing: Annotated[bool, typer.Option("--missing", help="only runs that the suite comes without")] = False,
    track: Annotated[
        str | None, typer.Option(help="tell each stored run to this tracker: tensorboard or wandb", metavar="NAME")
    ] = None,
    on: options.On = None,
    jobs: options.Jobs = None,
    engine_options: options.EngineOptions = None,
    dry_run: options.DryRun = False,
    wait: options.WaitForWorkers = False,
) -> None:
    part, chosen = options.a_share(share), selector or []
    others = {"--budget": budget, "--share": share, "--memory": memory, "--seeds": seeds, "--track": track}
    others |= {"--no-wait": no_wait, "--missing": missing, "--only": only}
    to = options.Request(on, jobs, engine_options, dry_run, wait)
    to.check(others)
    asked = RunOptions(
        profile, store, data, device, workers, budget, not no_wait, part, memory, seeds, track, missing, only
    )
    if to.on is None:
        raise typer.Exit(run_artifacts(select(chosen), chosen, asked))
    raise typer.Exit(submit_artifacts(select(chosen), ["run", *chosen], chosen, asked, to))


def run_artifacts(selection: Selection, asked: Sequence[str], options: RunOptions) -> int:
    """Compute what is not stored; ``asked`` are the words by which the store remembers the plan.

    Returns 0, or 1 when a run failed; raises Interrupted when a signal ended it, and ValueError (DataError,
    StoreError, UnknownName) before anything is computed when a data set is missing without which nothing can be, or
    the store cannot be written.
    """
    tracker = tracker_called(options.track) if options.track else None
    deadline = time.monotonic() + options.budget if options.budget else None
    chosen = choose(selection, options)
    names = {p.spec.id: p.artifacts[0] for p in chosen.mine}
    weights = {p.spec.id: p.seconds for p in chosen.mine}
    updates = {p.spec.id: count for p in chosen.mine if (count := p.spec.settings.get("updates"))}
    around = RunnerConfig(
        store=options.store,
        device=pick_device(options.device),
        data=options.data,
        deadline=deadline,
        checkpoint_seconds=checkpoint_seconds(),
    )
    store = Store(options.store, create=True)
    keep_wanted(store, chosen.plan, asked, options.profile)
    stages = stages_of(selection, chosen, options, around.device) if options.budget else None

    counts: Counter[str] = Counter()
    todo = [p.spec for p in chosen.mine]
    with watched(), Progress(weights, updates) as progress:
        while todo:
            busy = []
            for report in execute_all(
                todo, experiment, around, workers=options.workers, progress=progress.update, stages=stages
            ):
                if report.state == "busy":
                    busy.append(report.spec)
                    progress.update(report.spec.id, 0.0)  # under way elsewhere, as far as is known here
                    continue
                counts[report.state] += 1
                counts[NOT_BEGUN] += report.status == NOT_BEGUN
                show(report, names[report.spec.id], progress)
                if tracker and report.state == "stored":
                    run, folder = store.read(report.spec.id), store.root / "tracked" / str(options.track)
                    try:
                        tracker(run, names[run.id], folder)
                    except Exception as error:  # of a service or another package; the run is stored
                        progress.note(f"{run.id}: {options.track} was not told ({type(error).__name__}: {error})")
            if options.wait:
                todo = _wait(busy, store, around.late, progress)
            else:
                todo = let_go(busy, store, around.late)
            counts["late"] += len(busy) - len(todo)
        if counts[NOT_BEGUN]:
            progress.note(f"{counted(counts[NOT_BEGUN], 'run')} not begun")
        progress.note(no_runs(selection, options.profile) if chosen.empty else ending(counts, chosen))
        leave_if_asked()
    return 1 if counts["failed"] else 0


def stages_of(selection: Selection, chosen: Chosen, options: RunOptions, device: str) -> dict[str, int]:
    """By run, its place in the order of those that decide most claims in the time that there is."""
    have = {*chosen.stored, *with_committed(options.store).ids()}
    made = planning.ranked(selection, chosen.mine, options.profile, device, have)
    fitting, rest = planning.within(made, options.budget or math.inf, options.workers)
    return {item.spec.id: place for place, stage in enumerate([*fitting, *rest]) for item in stage.runs}


def show(report: RunReport, artifact: str, progress: Progress) -> None:
    """A line for a run that was computed, and why it is in the state that it is in."""
    line = f"{artifact} {report.spec.id} {report.state} {report.status}".strip()
    silent = report.state == "present" or report.status == NOT_BEGUN
    progress.finish(report.spec.id, "" if silent else line, computed=report.state in ("stored", "failed"))
    if report.why:
        progress.note(f"{report.spec.id}: {report.why}")


def ending(counts: Mapping[str, int], chosen: Chosen) -> str:
    """What became of the runs, by state; how many were left out, and why."""
    states = {"present": "already there", "late": "left for later", "failed": "failed"}
    told = [f"{counted(counts['stored'], 'run')} stored"]
    told += [f"{counts[state]} {words}" for state, words in states.items()]
    left_out = {"without their data": chosen.lacking, "beyond --memory": chosen.beyond}
    left_out["come with the suite"] = chosen.shipped
    return ", ".join([*told, *(f"{count} {words}" for words, count in left_out.items() if count)])


def no_runs(selection: Selection, profile: str) -> str:
    """That a selection has nothing to compute at a profile, and at which it has."""
    artifacts = [artifact for _, chosen in selection for artifact in chosen]
    what = artifacts[0].id if len(artifacts) == 1 else "the selection"
    others = [name for name in PROFILES if any(group for a in artifacts for group in a.runs(name).values())]
    more = f"it has some at {' and '.join(others)}" if others else "nor at another"
    return f"nothing to run: {what} has no runs at {profile}, {more}"


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
        progress.note(f"waiting for {counted(len(busy), 'run')} that another process is computing")
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


def let_go(busy: list[RunSpec], store: Store, late: Callable[[], bool]) -> list[RunSpec]:
    """Those of the runs that another process has let go of since, unfinished, or that died while it held them.

    A lease must be seen to stand still before it is taken over. Those that look forsaken are watched for as long as
    that takes. Nobody waits for a holder that gives signs of life.
    """
    began = time.monotonic()
    while True:
        held = [spec for spec in busy if store.busy(spec.id)]
        watching = any(store.locks.forsaken(spec.id) for spec in held)
        if not watching or late() or time.monotonic() - began > WATCHED * lease_seconds():
            return [spec for spec in busy if spec not in held]
        time.sleep(LOOK)


def silent_holder(store: Store, run_id: str) -> str:
    """Which process computes a run, and for how long it has given no sign of life; empty while it gives them."""
    notes = [note for folder in store.begun(run_id) if (note := note_in(folder))]
    if not notes:
        return ""
    last = max(notes, key=lambda note: note["seen"])
    try:
        silence = now_in(store.root / "staging") - last["seen"]
    except OSError:
        return ""
    where = f"pid {last['pid']} on {last['host']}" + (f" in job {last['job']}" if last["job"] else "")
    return f"{where}, silent for {duration(silence)}" if silence >= SILENT else ""


def submit_artifacts(
    selection: Selection, command: Sequence[str], asked: Sequence[str], options: RunOptions, to: Request
) -> int:
    """Hand what is not stored to an engine; prints its job names, or on a dry run its scripts.

    A worker is this program with ``command``, which makes the selection's runs; ``asked`` are the words by which the
    store remembers the plan. Returns 0, or after waiting 1 when something is still not stored once all workers have
    ended. Raises ValueError (UnknownName, EngineError, DataError, StoreError) before anything is submitted.
    """
    assert to.on is not None
    engine, about, store = ENGINES[to.on](), read_options(to.options), options.store
    chosen = choose(selection, options)
    left = [p for p in chosen.mine if p.spec.id not in chosen.stored]
    if not left:
        print(f"nothing to do: all {len(chosen.plan)} runs are stored", file=sys.stderr)
        return 0
    jobs = min(len(left), to.jobs or min(MOST_JOBS, math.ceil(len(left) / options.workers)))
    made = jobs_for(left, command, options, jobs, about)
    if to.dry_run:
        print("\n".join(engine.script(job) for job in made))
        return 0
    held = Store(store, create=True)
    keep_wanted(held, chosen.plan, asked, options.profile)
    names: list[str] = []
    for job in made:
        job.logs.mkdir(parents=True, exist_ok=True)
        name = engine.submit(replace(job, after=tuple(names) if NODE_LOCAL in about else ()))  # the last one merges
        record = {"engine": to.on, "job": name, "workers": job.workers, "submitted": time.time()}
        write_whole(held.root / "jobs" / f"{to.on}-{name}.json", json.dumps(record).encode())
        names.append(name)
        print(name)
    shares = f"{counted(len(left), 'run')} left to {counted(len(names), 'job')}"
    print(f"{shares}; see `status --store {store}`", file=sys.stderr)
    if not to.wait:
        return 0
    while workers_left(engine, names):
        time.sleep(LOOK_AT_JOBS)
    missing = {p.spec.id for p in chosen.plan} - held.ids()
    print(f"{len(chosen.plan) - len(missing)} of {len(chosen.plan)} runs stored", file=sys.stderr)
    return 1 if missing else 0


def workers_left(engine: Engine, names: Sequence[str]) -> bool:
    """Whether some worker of these jobs has not ended. An engine that does not answer says nothing of them."""
    try:
        return bool(engine.states(names))
    except EngineError as error:
        print(f"{error}; looking again in {LOOK_AT_JOBS:g} s", file=sys.stderr)
        return True


def jobs_for(
    left: Sequence[Planned], command: Sequence[str], options: RunOptions, count: int, about: Mapping[str, Any]
) -> list[Job]:
    """The jobs for what is left, of ``count`` workers; ``about`` are the engine's options and ours.

    With a common store an array for each step of memory: the array with the most may compute anything, the others
    take what fits, and workers are shared out by the estimated seconds of each group, at least one each while some
    are left. With node-local stores each worker computes its share of the plan and exports it, and another job merges
    the exports.
    """
    store, workers = options.store.resolve(), options.workers
    called = Path(sys.argv[0])  # a worker on another node starts what runs here
    program = [sys.executable, *(["-m", "suite"] if called.name == "__main__.py" else [str(called.absolute())])]
    profile = ["--profile", options.profile]
    worker = [*program, *command, *profile, "--device", options.device, "--workers", str(workers)]
    worker += ["--data", str(options.data.resolve())] if options.data else []
    own = {name: value for name, value in about.items() if name not in (NODE_LOCAL, EXPORTS)}
    job = partial(
        Job, "sgd-suite", logs=store / "jobs", cores=workers, gpus=int(options.device == "cuda"), options=own
    )
    if NODE_LOCAL in about:
        verb, *selectors = command
        if verb != "run":
            raise EngineError(
                f"{NODE_LOCAL} exports runs by artifact, and {verb}'s are none; let nodes share a store"
            )
        if EXPORTS not in about:
            raise EngineError(f"{NODE_LOCAL} needs {EXPORTS} = a folder that every node and this machine can write")
        local = re.sub(r"\$\{?(\w+)\}?", r"{env:\1}", str(about[NODE_LOCAL]))  # means something on the node alone
        mine, exports = ["--store", f"{local}/sgd-suite-{INDEX}"], Path(about[EXPORTS]).resolve()
        compute = [*worker, *mine, "--share", f"{INDEX}/{count}"]
        export = [*program, "export", *selectors, *profile, *mine, "--out", str(exports / f"{INDEX}.zip")]
        merges = [[*program, "merge", str(exports / f"{n}.zip"), "--store", str(store)] for n in range(count)]
        memory = max(memory_step(item.memory) for item in left)
        return [
            job([compute, export], workers=count, memory=memory * workers),
            Job("sgd-suite-merge", merges, store / "jobs", options=own),
        ]
    groups: dict[int, float] = defaultdict(float)
    for item in left:
        groups[memory_step(item.memory)] += item.seconds
    total, free = sum(groups.values()), count
    made = []
    for memory, seconds in sorted(groups.items(), reverse=True):
        if tasks := min(free, max(1, round(count * seconds / total))):
            alone = [*worker, "--store", str(store), "--no-wait", "--memory", str(memory)]
            made.append(job([alone], workers=tasks, memory=memory * workers))
            free -= tasks
    return made


def memory_step(needed: int) -> int:
    """The memory to ask for where a run needs so many bytes: the next power of two of a GiB."""
    return STEP * 2 ** max(0, math.ceil(math.log2(max(needed, 1) / STEP)))


def read_options(path: Path | None) -> dict[str, Any]:
    """The options of an engine. Raises EngineError for a file that is no TOML."""
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EngineError(f"{path} cannot be read as an engine's options: {error}") from error
