"""What of a store's plans is stored, running (where, since when, how far), failed and queued."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from suite.clock import duration
from suite.commands import options
from suite.commands.output import result
from suite.engines import ENGINES, EngineError
from suite.files import NUMBER, Fields, fits, now_in, read_note
from suite.runner.status_file import FAILURE, at_work, note_in
from suite.runs.run import StoreError
from suite.runs.store import Store
from suite.tables import UnknownName

TOLD = ("host", "pid", "job", "since", "fraction", "seen")  # of a sign of life
PLANNED: Fields = {"artifact": str, "seconds": NUMBER}  # of a run that a plan holds
JOB: Fields = {"engine": str, "job": str}
STATES = ("stored", "running", "interrupted", "failed", "queued")
LOOK = 10.0  # seconds between two looks of --watch


def command(
    *,
    store: options.StoreOption = options.STORE,
    watch: Annotated[bool, typer.Option("--watch", help="again every ten seconds, until nothing is left")] = False,
    as_json: options.Json = False,
) -> None:
    found = status(store)
    while watch and not as_json and any(found["counts"][name] for name in ("queued", "running")):
        print("\n".join(lines(found)), flush=True)
        time.sleep(LOOK)
        found = status(store)
    result(found, lines(found), as_json)


def status(store: Path) -> dict[str, Any]:
    """The state of a store as plain values; reads files alone and disturbs no worker. Raises StoreError."""
    held = Store(store)
    wanted = wanted_runs(store)
    stored = held.ids()
    try:
        now = now_in(store / "staging")  # by the file system's clock, which the signs of life carry
    except OSError:  # nothing can be written there
        now = time.time()
    runs: dict[str, dict[str, Any]] = {}
    for folder in held.begun():
        run_id = folder.parent.name
        if folder.is_dir() and run_id not in stored:
            found = _under_way(folder, now)
            # A run that left a plan, as one of a setting that was taken out of a sweep, failed for nobody any more.
            if run_id in wanted or not wanted or found["state"] == "running":
                runs[run_id] = found
    counts = Counter(run["state"] for run in runs.values())
    counts["stored"] = len(stored)
    counts["queued"] = len(set(wanted) - stored - set(runs))
    return {
        "store": str(store),
        "counts": {name: counts[name] for name in STATES},
        "runs": {run_id: {**run, **wanted.get(run_id, {})} for run_id, run in sorted(runs.items())},
        "jobs": job_states(store),
        "seconds_left": seconds_left(wanted, stored, runs, now),
    }


def _under_way(folder: Path, now: float) -> dict[str, Any]:
    """What a claim's folder tells of its run; failed where it left a traceback."""
    note = note_in(folder) or {}
    failure = folder / FAILURE
    state = "failed" if failure.exists() else "running" if note and at_work(note, now) else "interrupted"
    told: dict[str, Any] = {name: note[name] for name in TOLD if name in note}
    if state == "failed":
        told["failure"] = str(failure)
    return {"state": state, **told}


def wanted_runs(store: Path) -> dict[str, dict[str, Any]]:
    """By id, what the ``run`` commands on this store have planned: artifact and estimated seconds."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((store / "wanted").glob("*.json")):
        rows = _record(path, {}, "a plan; delete it, `run` writes it again")
        for run_id, row in rows.items():
            if not fits(row, PLANNED):
                raise StoreError(f"{path} cannot be read as a plan; delete it, `run` writes it again")
            found[run_id] = {name: row[name] for name in PLANNED}
    return found


def _record(path: Path, fields: Fields, cure: str) -> dict[str, Any]:
    """The mapping that a file of the store holds. Raises StoreError where it holds none or cannot be read."""
    try:
        found = read_note(path, fields)
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror})") from error
    if found is None:
        raise StoreError(f"{path} cannot be read as {cure}")
    return found


def job_states(store: Path) -> dict[str, dict[str, int]]:
    """By engine, how many workers of the jobs submitted for this store are in which state; or why that is unknown.

    Raises StoreError for a record that is none.
    """
    names: dict[str, list[str]] = {}
    for path in sorted((store / "jobs").glob("*.json")):
        record = _record(path, JOB, "a job; delete it")
        names.setdefault(record["engine"], []).append(record["job"])
    found: dict[str, Any] = {}
    for name, jobs in names.items():
        try:
            found[name] = dict(ENGINES[name]().states(jobs))
        except (EngineError, UnknownName) as error:
            found[name] = {"unknown": str(error)}
    return found


def seconds_left(
    wanted: Mapping[str, Mapping[str, Any]], stored: set[str], runs: Mapping[str, Mapping[str, Any]], now: float
) -> float | None:
    """Until all is stored, if those who work now go on as they do; None where nobody has got anywhere yet."""
    estimated = {run_id: float(wanted[run_id]["seconds"]) for run_id in wanted if run_id not in stored}
    working = [run for run in runs.values() if run["state"] == "running"]
    done = {run_id: run.get("fraction", 0.0) * estimated.get(run_id, 0.0) for run_id, run in runs.items()}
    spent = sum(max(0.0, now - run["since"]) for run in working)
    gained = sum(done[run_id] for run_id, run in runs.items() if run["state"] == "running")
    if not gained or not spent:
        return 0.0 if not estimated else None
    return (sum(estimated.values()) - sum(done.values())) / (gained / spent) / len(working)


def lines(found: Mapping[str, Any]) -> list[str]:
    """The state as text."""
    text = [f"{found['store']}: " + ", ".join(f"{count} {name}" for name, count in found["counts"].items())]
    for run_id, run in found["runs"].items():
        where = f"on {run['host']}" + (f" in job {run['job']}" if run.get("job") else "") if "host" in run else ""
        if run["state"] == "running":
            ago = duration(max(0.0, run["seen"] - run["since"]))
            where += f" since {ago}, {run['fraction']:.0%} done"
        where = " ".join(part for part in (where, run.get("failure", "")) if part)
        text.append(f"  {run['state']:<12} {run_id} {run.get('artifact', '')} {where}".rstrip())
    for name, states in found["jobs"].items():
        told = ", ".join(f"{count} {state}" for state, count in states.items()) or "no worker left"
        text.append(f"{name}: {states.get('unknown', told)}")
    left = found["seconds_left"]
    if left is not None:
        text.append(f"about {duration(left)} left" if left else "nothing left to do")
    return text
