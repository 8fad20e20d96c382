"""Every kind of run, killed by SIGKILL again and again, two-process training and saving included.

    python tests/harness/kills.py --kills 300 --seed 0 --out tests/harness/kills.md

Each trial forks a child that executes a run with a checkpoint at every update, kills it at a random instant, and
starts the next, which resumes; after its share of the kills a last child is left to finish. The result must be that
of an undisturbed run, to the bit, with one stored folder and nothing else left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import killed_pair
import torch
import toy

from suite.commands.planning import plan
from suite.data.images import load_images
from suite.papers.catalogue import experiment, select
from suite.runner.execute import RunnerConfig, execute
from suite.runs.comparison import identical
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training import loop as training  # noqa: F401 (imported before the fork)

PAIR = "training by two processes"
Row = dict[str, Any]  # counts of a trial


def smoke(name: str) -> RunSpec:
    """The first run of an experiment at the smoke profile."""
    return next(p.spec for p in plan(select([]), "smoke") if p.spec.experiment == name)


@dataclass(frozen=True)
class Kind:
    """A kind of run: what is executed together."""

    name: str
    specs: Callable[[], tuple[RunSpec, ...]]
    saves: bool = True  # whether it leaves checkpoints
    slow_saving: bool = False  # every flush to disk takes long, so that kills fall into it


KINDS = (
    Kind("train", lambda: (toy.digits(updates=200),)),
    Kind("train, while saving", lambda: (toy.digits(updates=40),), slow_saving=True),
    Kind("inverse_law/sweep", lambda: (smoke("inverse_law/sweep"),)),
    Kind("crossbow/followed", lambda: (smoke("crossbow/followed"),)),
    Kind("matex_agd/serial_gap", lambda: (smoke("matex_agd/serial_gap"),), saves=False),
    Kind("isgd/trace", lambda: (smoke("isgd/trace"),), saves=False),
    Kind("rudra/protocol", lambda: (smoke("rudra/protocol"),), saves=False),
)  # fmt: skip


def compute(kind: Kind, root: Path) -> bool:
    """Execute the runs of a kind on a store; whether all are there afterwards."""
    around = RunnerConfig(root, checkpoint_seconds=0.0)
    reports = [execute(spec, experiment, around) for spec in kind.specs()]
    return all(report.state in ("stored", "present") for report in reports)


def child(kind: Kind, root: Path) -> int:
    """Compute in a forked process; returns its process id."""
    if (pid := os.fork()) == 0:
        if kind.slow_saving:
            os.fsync = killed_pair.slowly
        os._exit(0 if compute(kind, root) else 1)
    return pid


def trials(kind: Kind, kills: int, draws: random.Random, folder: Path) -> Iterator[Row]:
    """Kill a kind of run so often, as several runs where one ends too soon; what was seen of each."""
    specs = kind.specs()
    for spec in specs:
        experiment(spec.experiment).load()  # imported here, once, and not by every child
    undisturbed, began = folder / "undisturbed", time.monotonic()
    _, status = os.waitpid(child(kind, undisturbed), 0)
    assert status == 0, kind.name
    whole = time.monotonic() - began
    reference = {spec.id: Store(undisturbed).read(spec.id) for spec in specs}
    for number in count():
        if kills <= 0:
            return
        store = Store(folder / f"trial-{number}", create=True)
        killed = under_way = 0
        for _ in range(min(kills, 12)):
            if all(store.has(spec.id) for spec in specs):
                break
            pid = child(kind, store.root)
            if kind.saves and draws.random() < 0.7:  # the others are killed at any instant, start-up included
                until_saved(pid, store.root)
            time.sleep(draws.uniform(0.0, 0.3) * whole)
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            killed += os.WIFSIGNALED(status)
            left = any((store.root / "partial").glob("*/*/checkpoint*"))
            under_way += os.WIFSIGNALED(status) and left
        os.waitpid(child(kind, store.root), 0)
        lost = sum(not store.has(spec.id) for spec in specs)
        doubled = len(store.ids() - set(reference)) + len(list((store.root / "partial").iterdir()))
        unlike = sum(store.has(i) and not identical(store.read(i), run) for i, run in reference.items())
        kills -= killed
        yield row(kind.name, killed, under_way, lost, doubled, unlike)


def row(kind: str, killed: int, under_way: int, lost: int, doubled: int, unlike: int) -> Row:
    counts = {"killed": killed, "under_way": under_way, "lost": lost, "doubled": doubled, "unlike": unlike}
    return {"kind": kind, "trials": 1, **counts}


def until_saved(pid: int, root: Path) -> None:
    """Until a child has written a checkpoint, or has ended."""
    saved = lambda: {(path, path.stat().st_mtime_ns) for path in (root / "partial").glob("*/*/checkpoint*")}
    ended = lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    with contextlib.suppress(FileNotFoundError):  # replaced while we looked
        before = saved()
        while not ended() and saved() == before:
            time.sleep(0.005)


def trials_of_two(kills: int, draws: random.Random, folder: Path) -> Iterator[Row]:
    """A training by two processes, of which the parent or one worker is killed."""
    command = [sys.executable, killed_pair.__file__]
    environment = toy.environment()
    run = lambda place: subprocess.Popen([*command, str(place)], env=environment, stdout=subprocess.PIPE, text=True,
                                         stderr=subprocess.DEVNULL)  # fmt: skip
    expected = run(folder / "undisturbed").communicate()[0]
    assert expected
    for number in count():
        if kills <= 0:
            return
        place = folder / f"trial-{number}"
        killed = under_way = 0
        for _ in range(min(kills, 5)):
            process = run(place)
            until_under_way(place)
            time.sleep(draws.uniform(0.0, 0.5))
            os.kill(draws.choice([process.pid, *children(process.pid)]), signal.SIGKILL)
            process.communicate()
            killed += process.returncode != 0
            under_way += process.returncode != 0 and any(place.glob("update-*/worker-*/checkpoint"))
        said = run(place).communicate()[0]
        kills -= killed
        yield row(PAIR, killed, under_way, int(not said), 0, int(bool(said) and said != expected))


def until_under_way(place: Path) -> None:
    """Until one more checkpoint has been written at a place; a minute at most."""
    seen = lambda: {path.parts[-3] for path in place.glob("update-*/worker-*/checkpoint")}
    before, began = seen(), time.monotonic()
    while time.monotonic() - began < 60 and seen() <= before:
        time.sleep(0.01)


def children(pid: int) -> list[int]:
    import psutil

    return [process.pid for process in psutil.Process(pid).children(recursive=True)]


def report(rows: list[Row], seed: int) -> str:
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    names = [name for name in rows[0] if name != "kind"]
    sums = {kind: {name: sum(r[name] for r in rows if r["kind"] == kind) for name in names} for kind in kinds}
    sums["all"] = {name: sum(r[name] for r in rows) for name in names}
    head = (
        f"# Killed by SIGKILL\n\nWritten by `python tests/harness/kills.py`: {sums['all']['killed']} kills, seed "
        f"{seed}. A trial is killed several times and then left to finish. *Under way* counts kills that left a "
        "checkpoint; *unlike* are results that are not those of an undisturbed run, to the bit.\n\n"
        "| kind of run | trials | killed | under way | lost | doubled | unlike |\n|---|--:|--:|--:|--:|--:|--:|\n"
    )
    return head + "".join(f"| {kind} | {' | '.join(map(str, row.values()))} |\n" for kind, row in sums.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rows", type=Path, help="keep the counts of each trial here, and go on from them")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    load_images("digits", "test")  # what reads them is imported once
    known = chosen.rows.read_text(encoding="utf-8").splitlines() if chosen.rows and chosen.rows.exists() else ()
    rows: list[Row] = [json.loads(line) for line in known]
    pair = chosen.kills // 12  # each takes three new interpreters
    each = -(-(chosen.kills - pair) // len(KINDS))
    todo = {PAIR: (trials_of_two, pair)} | {kind.name: (partial(trials, kind), each) for kind in KINDS}
    with tempfile.TemporaryDirectory() as name:
        for place, (kind, (kill, wanted)) in enumerate(todo.items()):
            left = wanted - sum(row["killed"] for row in rows if row["kind"] == kind)
            for found in (
                () if left <= 0 else kill(left, random.Random(f"{chosen.seed} {kind} {left}"), Path(name, str(place)))
            ):
                print(found, flush=True)
                rows.append(found)
                if chosen.rows:
                    with open(chosen.rows, "a", encoding="utf-8") as stream:
                        stream.write(json.dumps(found) + "\n")
                if chosen.out:
                    chosen.out.write_text(report(rows, chosen.seed), encoding="utf-8")
    print(report(rows, chosen.seed))
    return 1 if any(row[name] for row in rows for name in ("lost", "doubled", "unlike")) else 0


if __name__ == "__main__":
    sys.exit(main())
