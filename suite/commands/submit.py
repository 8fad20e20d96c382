"""``run`` and ``vary`` with ``--on ENGINE``: what is left of a plan, handed to workers by what the runs need."""

from __future__ import annotations

import json
import math
import re
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from suite.clock import counted
from suite.commands.options import Request, RunOptions
from suite.commands.planning import Planned, Selection, choose, keep_wanted
from suite.engines import ENGINES, INDEX, EngineError, Job
from suite.files import write_whole
from suite.runs.store import Store

MOST_JOBS = 16  # unless --jobs says otherwise
STEP = 2**30  # bytes of memory: groups differ by powers of two of it
NODE_LOCAL, EXPORTS = "node_local", "exports"  # options that are ours, whatever the engine
LOOK = 10.0  # seconds between two looks of --wait


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
    while engine.states(names):
        time.sleep(LOOK)
    missing = {p.spec.id for p in chosen.plan} - held.ids()
    print(f"{len(chosen.plan) - len(missing)} of {len(chosen.plan)} runs stored", file=sys.stderr)
    return 1 if missing else 0


def jobs_for(
    left: Sequence[Planned], command: Sequence[str], options: RunOptions, count: int, about: Mapping[str, Any]
) -> list[Job]:
    """The jobs for what is left, of ``count`` workers; ``about`` are the engine's options and ours.

    With a common store an array for each step of memory: the array with the most may compute anything, the others
    take what fits, and workers are shared out by the estimated seconds of each group, at least one each. With
    node-local stores each worker computes its share of the plan and exports it, and a second job merges the exports.
    """
    store, workers = options.store.resolve(), options.workers
    program, profile = this_program(), ["--profile", options.profile]
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
    total = sum(groups.values())
    return [
        job(
            [[*worker, "--store", str(store), "--no-wait", "--memory", str(memory)]],
            workers=max(1, round(count * seconds / total)),
            memory=memory * workers,
        )
        for memory, seconds in sorted(groups.items(), reverse=True)
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
