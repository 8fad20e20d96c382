"""``run`` and ``vary`` with ``--on ENGINE``: what is left of a plan, handed to workers by what the runs need."""

from __future__ import annotations

import json
import math
import re
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from suite.clock import counted
from suite.commands.plan import Planned, plan
from suite.commands.run import RunOptions, Selection, keep_wanted, several, without_data
from suite.engines import INDEX, EngineError, Job, engine
from suite.files import write_whole
from suite.runs.store import Store

MOST_JOBS = 16  # unless --jobs says otherwise
STEP = 2**30  # bytes of memory: groups differ by powers of two of it
NODE_LOCAL, EXPORTS = "node_local", "exports"  # options that are ours, whatever the engine
LOOK = 10.0  # seconds between two looks of --wait


class Request(NamedTuple):
    """What the user asked of an engine, beside the selection."""

    on: str
    jobs: int | None = None
    options: Path | None = None  # a TOML file
    dry_run: bool = False
    wait: bool = False


def submit_artifacts(
    selection: Selection, command: Sequence[str], asked: Sequence[str], options: RunOptions, to: Request
) -> int:
    """Hand what is not stored to an engine; prints its job names, or on a dry run its scripts.

    A worker is this program with ``command``, which makes the selection's runs; ``asked`` are the words by which the
    store remembers the plan. Returns 0, or after waiting 1 when something is still not stored once all workers have
    ended. Raises ValueError (EngineError, DataError, StoreError) before anything is submitted.
    """
    chosen, about = engine(to.on), read_options(to.options)
    store, workers = options.store, options.workers
    planned = plan(selection, options.profile)
    stored = Store(store, create=not to.dry_run).ids() if not to.dry_run or store.is_dir() else set()
    lacking = without_data(planned, planned, stored, options.data, options.profile, leave_out=several(selection))
    planned = [p for p in planned if p.spec.id not in lacking]
    left = [p for p in planned if p.spec.id not in stored]
    if not left:
        print(f"nothing to do: all {len(planned)} runs are stored", file=sys.stderr)
        return 0
    if NODE_LOCAL in about and command[0] != "run":
        raise EngineError(
            f"{NODE_LOCAL} exports runs by artifact, and {command[0]}'s are none; let nodes share a store"
        )
    base = [*this_program(), *command, "--profile", options.profile, "--device", options.device]
    base += ["--workers", str(workers)]
    base += ["--data", str(options.data.resolve())] if options.data else []
    jobs = to.jobs or min(MOST_JOBS, math.ceil(len(left) / workers))
    made = jobs_for(left, base, store.resolve(), jobs, workers, int(options.device == "cuda"), about)
    if to.dry_run:
        print("\n".join(chosen.script(job) for job in made))
        return 0
    held = Store(store)
    keep_wanted(held, planned, asked, options.profile)
    names: list[str] = []
    for job in made:
        merges = job is made[-1] and NODE_LOCAL in about  # what all others have exported
        job.logs.mkdir(parents=True, exist_ok=True)
        name = chosen.submit(replace(job, after=tuple(names) if merges else ()))
        record = {"engine": to.on, "job": name, "workers": job.workers, "submitted": time.time()}
        write_whole(held.root / "jobs" / f"{to.on}-{name}.json", json.dumps(record).encode())
        names.append(name)
        print(name)
    shares = f"{counted(len(left), 'run')} left to {counted(len(names), 'job')}"
    print(f"{shares}; see `status --store {store}`", file=sys.stderr)
    if not to.wait:
        return 0
    while chosen.states(names):
        time.sleep(LOOK)
    missing = {p.spec.id for p in planned} - held.ids()
    print(f"{len(planned) - len(missing)} of {len(planned)} runs stored", file=sys.stderr)
    return 1 if missing else 0


def jobs_for(
    left: Sequence[Planned],
    base: Sequence[str],
    store: Path,
    asked: int,
    workers: int,
    gpus: int,
    options: Mapping[str, Any],
) -> list[Job]:
    """The jobs for what is left: an array for each step of memory, or node-local stores and a job that merges them.

    The array with the most memory may compute anything; the others take what fits. Jobs are shared out by the
    estimated seconds of each group, at least one each.
    """
    logs, own = store / "jobs", {name: value for name, value in options.items() if name not in (NODE_LOCAL, EXPORTS)}
    if NODE_LOCAL in options:
        return _node_local(left, base, store, asked, workers, gpus, options, own)
    groups: dict[int, float] = {}
    for item in left:
        groups[memory_step(item.memory)] = groups.get(memory_step(item.memory), 0.0) + item.seconds
    total = sum(groups.values())
    return [
        Job(
            name="sgd-suite",
            commands=[[*base, "--store", str(store), "--no-wait", "--memory", str(memory)]],
            logs=logs,
            workers=max(1, round(asked * seconds / total)),
            cores=workers,
            memory=memory * workers,
            gpus=gpus,
            options=own,
        )
        for memory, seconds in sorted(groups.items(), reverse=True)
    ]


def _node_local(
    left: Sequence[Planned],
    base: Sequence[str],
    store: Path,
    asked: int,
    workers: int,
    gpus: int,
    options: Mapping[str, Any],
    own: Mapping[str, Any],
) -> list[Job]:
    """Workers that share nothing but a folder for their exports: each computes its share of the plan."""
    if EXPORTS not in options:
        raise EngineError(f"{NODE_LOCAL} needs {EXPORTS} = a folder that every node and this machine can write")
    local = re.sub(r"\$\{?(\w+)\}?", r"{env:\1}", str(options[NODE_LOCAL]))  # means something on the node alone
    mine, exports = f"{local}/sgd-suite-{INDEX}", Path(options[EXPORTS]).resolve()
    out = str(exports / f"{INDEX}.zip")
    selectors, profile = base[base.index("run") + 1 : base.index("--profile")], base[base.index("--profile") + 1]
    program = base[: base.index("run")]
    memory = max(memory_step(item.memory) for item in left)
    compute = [*base, "--store", mine, "--share", f"{INDEX}/{asked}"]
    export = [*program, "export", *selectors, "--profile", profile, "--store", mine, "--out", out]
    merges = [[*program, "merge", str(exports / f"{n}.zip"), "--store", str(store)] for n in range(asked)]
    logs = store / "jobs"
    return [
        Job("sgd-suite", [compute, export], logs, asked, workers, memory * workers, gpus, options=own),
        Job("sgd-suite-merge", merges, logs, options=own),
    ]


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


def this_program() -> list[str]:
    """How a worker on another node starts what runs here."""
    program = Path(sys.argv[0])
    return [sys.executable, *(["-m", "suite"] if program.name == "__main__.py" else [str(program.absolute())])]
