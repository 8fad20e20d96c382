"""Sessions on a disk whose operations fail, and whose power is cut, at every place.

    python tests/harness/faults.py --every 1 --out tests/harness/faults.md

Each kind of session (a run, a training, an import, two holders of one store, a report) is gone through once while its
operations are counted and recorded. Then it is repeated with one operation failing, and what a power cut leaves is
laid out and gone on with. Afterwards a session on the same folder must come to the undisturbed result, to the bit.
With ``--every N`` only one in N operations and states is tried, drawn by a fixed seed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import disk
import torch
import toy

from suite.experiment import Context
from suite.papers.catalogue import experiment
from suite.report.site import build
from suite.runner.execute import RunnerConfig, execute
from suite.runs import environment
from suite.runs.archive import Archive, export, merge
from suite.runs.comparison import identical, relation
from suite.runs.run import StoreError, UnusableRun
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training import loop as training  # noqa: F401 (imported once)

DRAWS = tuple(RunSpec("toy/draw", {"profile": "smoke", "sleep": 0.0}, seed) for seed in range(3))
TRAINING = toy.digits(updates=4, evaluate={"every": 4})
PATIENCE = 60.0  # seconds that the last session waits for leases of those before
WORDS = (StoreError, OSError)  # what the command line says in a sentence
LEFT = ("partial", "refused", "contested")  # folders of a store that end empty; staging is swept after an hour
Count = Counter[str]


@dataclass(frozen=True)
class Session:
    """A kind of session: what lies there before, and what is done then, which says the runs that it stored."""

    name: str
    before: Callable[[Path], object]
    work: Callable[[Path], list[str]]
    specs: tuple[RunSpec, ...]
    costs: int = 1  # what one of its trials costs, beside those of others: so many fewer are tried
    report: bool = False


def runs(specs: tuple[RunSpec, ...], root: Path) -> list[str]:
    """Compute runs; returns those that are said to be stored."""
    around = RunnerConfig(root / "store", checkpoint_seconds=0.0)
    return [spec.id for spec in specs if said(execute(spec, experiment, around)) in ("stored", "present")]


def said(report) -> str:
    """The state of a report, which says in a sentence why a run failed."""
    if report.state == "failed" and not report.why:
        raise AssertionError("failed without a word")
    return report.state


def cut_short(root: Path) -> None:
    """Leave a training with a checkpoint after its second update."""
    looks, late = iter((False, False, True, True, True, True)), Context.late
    Context.late = property(lambda context: next(looks))
    try:
        runs((TRAINING,), root)
    finally:
        Context.late = late


def take(archive: Path, root: Path) -> list[str]:
    """Import an exported file; returns the runs that are said to be there."""
    store = Store(root / "store", create=True)
    done = merge(Archive(archive), store, partial(relation, timed=False))
    return [*done.new, *done.present]


def two(root: Path) -> list[str]:
    """Compute runs in two processes at once, of which the operations of the first may fail."""
    os.environ.update(SGD_SUITE_LOCKS="lease", SGD_SUITE_LEASE_SECONDS="0.5")
    children = {}
    for specs in (DRAWS, DRAWS[::-1]):
        reader, writer = os.pipe()
        if (pid := os.fork()) == 0:
            if children:
                DISK.fail("open", 0, 0, 0)
            answer = attempt(partial(runs, specs, root))
            os.write(writer, json.dumps(answer).encode())
            os._exit(0)
        os.close(writer)
        children[pid] = reader
    found: list[str] = []
    for pid, reader in children.items():
        os.waitpid(pid, 0)
        with open(reader, "rb") as stream:
            stored, words = json.loads(stream.read())
        found += stored
        if words:
            raise RuntimeError(words)
    return found


def reported(root: Path) -> list[str]:
    """Write the site of the toy paper's runs."""
    build.write_site(Store(root / "store"), root / "report")
    return []


def attempt(work: Callable[[], list[str]]) -> tuple[list[str], str]:
    """The runs that a session says are stored, and the traceback of an error that no sentence is made of."""
    try:
        return work(), ""
    except WORDS:
        return [], ""
    except Exception:
        return [], traceback.format_exc()


def sessions(folder: Path) -> Iterator[Session]:
    """All kinds of sessions; ``folder`` takes what they start from."""
    whole = folder / "whole"
    runs(DRAWS, whole)
    archive = folder / "runs.zip"
    export({spec.id: Store(whole / "store").files(spec.id) for spec in DRAWS}, archive, {})
    first = partial(runs, DRAWS[:1])
    copied = partial(shutil.copytree, whole, dirs_exist_ok=True)
    yield Session("a quick run beside a stored one", first, partial(runs, DRAWS[:2]), DRAWS[:2])
    yield Session("a training, gone on with", cut_short, partial(runs, (TRAINING,)), (TRAINING,))
    yield Session("an import into a store with runs", first, partial(take, archive), DRAWS)
    yield Session("a store with two holders at work", first, two, DRAWS, costs=4)
    yield Session("a report", copied, reported, (), costs=10, report=True)


DISK: disk.Disk


@dataclass
class Trials:
    """A session under faults: its undisturbed result, and what was counted so far."""

    session: Session
    folder: Path
    every: int

    def __post_init__(self) -> None:
        self.start, log, self.draws = self.folder / "start", self.folder / "log", random.Random(self.session.name)
        self.start.mkdir(parents=True)
        self.session.before(self.start)
        self.whole = self.new("whole")
        DISK.watch(self.whole, log)
        for run_id in self.session.work(self.whole):
            DISK.mark(run_id)
        self.operations = {kind: DISK.seen(kind) for kind in disk.KINDS}
        DISK.rest()
        store = Store(self.whole / "store")
        self.expected = {spec.id: store.read(spec.id) for spec in self.session.specs}
        self.log, self.count = log, Count()

    def new(self, name: str) -> Path:
        """A folder as it lies before the session."""
        return Path(shutil.copytree(self.start, self.folder / name))

    def same(self, root: Path) -> bool:
        """Whether the session has come to the undisturbed result, to the bit."""
        if self.session.report:
            return pages(root) == pages(self.whole)
        found = Store(root / "store")
        if found.ids() != self.expected.keys():
            return False
        with contextlib.suppress(UnusableRun):
            return all(identical(found.read(run_id), run) for run_id, run in self.expected.items())
        return False

    def fail_each(self) -> None:
        """Repeat the session with one operation failing, or all from it on."""
        turns = (
            (kind, at, error, times)
            for kind in disk.KINDS
            for at in range(1, self.operations[kind] + 1)
            for error in disk.ERRORS[kind]
            for times in (1, 10**6)
        )
        for kind, at, error, times in turns:
            if self.draws.random() * self.every >= 1:
                continue
            root = self.new("failing")
            DISK.watch(root)
            DISK.fail(kind, at, times, error)
            stored, words = attempt(partial(self.session.work, root))
            self.count["failed"] += DISK.failed() > 0
            DISK.rest()
            where = f"{kind} {at} ({os.strerror(error)}, {times} times)"
            if words:
                self.fault("without words", f"{where}: {words}")
            self.judge(root, set(stored), where)

    def cut_each(self) -> None:
        """Lay out what a power cut leaves after each operation, and go on with it."""
        replay, tried, stored = disk.Replay(self.start), set[str](), set[str]()
        for place, done in enumerate(disk.operations(self.log)):
            if done.kind == "!":
                stored.add(done.path)
            else:
                replay.apply(done)
            for loss, state in enumerate(replay.states()):
                about = digest(repr([sorted(state.items()), sorted(stored)]).encode())
                if about in tried:
                    continue
                tried.add(about)
                if self.draws.random() * self.every >= 1:
                    continue
                root = self.folder / "cut"
                root.mkdir()
                disk.lay(state, root)
                self.count["states"] += 1
                where = f"cut {loss} after operation {place} ({done.kind} {done.path})"
                self.judge(root, stored, where)

    def judge(self, root: Path, stored: set[str], where: str) -> None:
        """Look at what is left, go on with it, and compare with the undisturbed result; then remove it."""
        kept = [spec.id for spec in self.session.specs if (self.start / "store" / "runs" / spec.id).exists()]
        store = Store(root / "store", create=True)
        if not self.session.report:
            self.look(store, stored | set(kept), where)
            self.wait(store)
        _, words = attempt(partial(self.session.work, root))
        if words or not self.same(root):
            self.fault("half believed" if self.session.report else "lost", f"{where}: not made good {words}")
        if left := [str(path) for part in LEFT for path in (root / "store" / part).glob("*")]:
            self.fault("doubled", f"{where}: {left}")
        shutil.rmtree(root)

    def wait(self, store: Store) -> None:
        """Until no run is held any more, as a session waits for the runs of others."""
        end = time.monotonic() + PATIENCE
        while any(store.busy(spec.id) for spec in self.session.specs) and time.monotonic() < end:
            time.sleep(0.05)

    def look(self, store: Store, stored: set[str], where: str) -> None:
        """Whether the runs that stand there are those that were computed, and all that were said to be stored."""
        for spec in self.session.specs:
            try:
                if not identical(store.read(spec.id), self.expected[spec.id]):
                    self.fault("half believed", f"{where}: {spec.id} is another")
            except (UnusableRun, KeyError) as error:
                if spec.id in stored or not isinstance(error, KeyError):
                    self.fault("lost", f"{where}: {error!r}")

    def fault(self, kind: str, what: str) -> None:
        self.count[kind] += 1
        print(f"{self.session.name}: {kind}: {what}", flush=True)


def pages(root: Path) -> dict[str, bytes]:
    """The pages of a report by name.

    A power cut may leave a hidden file that was to be renamed, which nobody reads.
    """
    files = [path for path in (root / "report").rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {path.name: path.read_bytes() for path in files}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


COLUMNS = ("operations", "failed", "states", "lost", "doubled", "half believed", "without words")


def table(found: dict[str, Count], every: int) -> str:
    """The table of all sessions."""
    total = sum(found.values(), Count())
    head = (
        f"# Failing operations and power cuts\n\nWritten by `python tests/harness/faults.py --every {every}`. "
        f"*Failed* are trials in which an open, read, write, fsync or rename failed ({', '.join(disk.names())}), "
        "once or from then on. *States* are what a power cut may leave. Each was gone on with and had to come to the "
        "undisturbed result, to the bit. *Lost* are runs that were stored or are not made good, *doubled* folders "
        "that nobody needs, *half believed* runs and reports that are taken for whole, and *without words* errors "
        "that the command line makes no sentence of.\n\n"
    )
    line = lambda name, count: f"| {name} | {' | '.join(str(count[column]) for column in COLUMNS)} |\n"
    rows = [line(name, count) for name, count in (found | {"all": total}).items()]
    return head + f"| session | {' | '.join(COLUMNS)} |\n|---|{'--:|' * len(COLUMNS)}\n" + "".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="try one in N, and fewer of costly sessions")
    parser.add_argument("--only", default="", help="sessions whose name holds this")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    found: dict[str, Count] = {}
    with tempfile.TemporaryDirectory() as name:
        for number, session in enumerate(sessions(Path(name))):
            if chosen.only in session.name:
                began = time.monotonic()
                every = chosen.every * session.costs if chosen.every > 1 else 1
                trials = Trials(session, Path(name, str(number)), every)
                trials.fail_each()
                trials.cut_each()
                found[session.name] = trials.count | Count(operations=sum(trials.operations.values()))
                print(session.name, dict(found[session.name]), f"{time.monotonic() - began:.1f} s", flush=True)
    if chosen.out:
        chosen.out.write_text(table(found, chosen.every), encoding="utf-8")
    print(table(found, chosen.every))
    return 1 if any(count[column] for count in found.values() for column in COLUMNS[3:]) else 0


if __name__ == "__main__":
    disk.preload()
    DISK = disk.Disk()
    os.environ.update(TOY_RUNS="3", TOY_UPDATES="4")
    toy.install()
    environment.revision = build.revision = cache(environment.revision)  # asked once, of a tree that stays as it is
    torch.set_num_threads(1)
    sys.exit(main())
