"""A real Slurm of two nodes, and what goes wrong with one: every run is stored once, whatever is killed.

    pytest tests/cluster --require cluster --cases tests/cluster/cases.md

writes the table of cases: what was done to the cluster, runs wanted, attempts begun, runs lost and runs done twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import toy
from two_nodes import Cluster, cluster, wait_for

from suite.runs.store import Store

pytestmark = pytest.mark.cluster
PATIENCE = 600.0  # seconds until a trial must be over, on a machine however busy


@dataclass
class Trial:
    """A store, the toy's draws to be computed on it, and the list of what was begun and done."""

    folder: Path
    runs: int
    seconds: float  # of one run

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def sgd(self, on: Cluster, *arguments: object) -> subprocess.CompletedProcess[str]:
        """The command line on a cluster."""
        variables = {"TOY_RUNS": str(self.runs), "TOY_SLEEP": str(self.seconds)}
        variables |= {"TOY_LOG": str(self.folder / "begun"), "TOY_DONE": str(self.folder / "done")}
        command = [sys.executable, toy.__file__, *map(str, arguments), "--store", str(self.store)]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=toy.environment(**variables) | on.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def submit(self, on: Cluster, *arguments: object) -> str:
        """Submit all draws; returns the last job's name."""
        done = self.sgd(on, "run", "toy/table1", "--profile", "smoke", "--device", "cpu", "--on", "slurm", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[-1]

    def options(self, **options: object) -> Path:
        path = self.folder / "options.toml"
        path.write_text("\n".join(f'{name.replace("_", "-")} = "{value}"' for name, value in options.items()))
        return path

    def begun(self) -> Counter[str]:
        path = self.folder / "begun"
        return Counter(path.read_text().split()) if path.exists() else Counter()

    def done(self) -> Counter[str]:
        path = self.folder / "done"
        return Counter(path.read_text().split()) if path.exists() else Counter()

    def wanted(self) -> set[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TOY_RUNS", str(self.runs))
            patch.setenv("TOY_SLEEP", str(self.seconds))
            return {spec.id for spec in toy.runs("smoke")["draws"]}

    def logs(self) -> str:
        return "\n".join(f"== {p.name}\n{p.read_text()}" for p in sorted((self.store / "jobs").glob("*.txt")))


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path, 8, 2.0)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm")) as made:
        yield made


@pytest.fixture
def record(rows: list[tuple[str, int, int, int, int]]):
    """Adds a row to the table of cases, and demands that no run was lost and none done twice."""

    def add(trial: Trial, fault: str) -> None:
        stored, wanted = Store(trial.store).ids(), trial.wanted()
        for run_id in stored:
            Store(trial.store).read(run_id)
        lost, twice = wanted - stored, {run_id for run_id, count in trial.done().items() if count > 1}
        rows.append((fault, len(wanted), trial.begun().total(), len(lost), len(twice)))
        assert (lost, twice) == (set(), set()), trial.logs()
        assert not list((trial.store / "partial").iterdir())

    return add


def over(on: Cluster) -> None:
    """Until nothing is queued or running."""
    wait_for(lambda: not on.queue(), PATIENCE)


def first_running(on: Cluster, trial: Trial) -> tuple[str, str]:
    """A task that computes a run, and its node; waits for it."""
    found: list[tuple[str, str]] = []

    def look() -> bool:
        found[:] = [(name, node) for name, state, node in on.queue() if state == "RUNNING"]
        return bool(found) and bool(trial.begun())

    wait_for(look, PATIENCE)
    return found[0]


def test_an_array_over_both_nodes_computes_every_run_once(slurm: Cluster, trial: Trial, record):
    trial.submit(slurm, "--jobs", 4)
    nodes: set[str] = set()

    def look() -> bool:
        nodes.update(node for _, state, node in slurm.queue() if state == "RUNNING")
        return not slurm.queue()

    wait_for(look, PATIENCE)
    record(trial, "none")
    assert nodes == {"n1", "n2"}
    told = trial.sgd(slurm, "status")
    assert "8 stored, 0 running, 0 interrupted, 0 failed, 0 queued" in told.stdout
    assert "slurm: no worker left" in told.stdout
    again = trial.sgd(slurm, "run", "toy/table1", "--profile", "smoke", "--device", "cpu", "--on", "slurm")
    assert "nothing to do: all 8 runs are stored" in again.stderr


def test_waiting_ends_with_the_workers_and_tells_what_is_stored(slurm: Cluster, trial: Trial, record):
    trial.runs = 3
    done = trial.sgd(
        slurm, "run", "toy/table1", "--profile", "smoke", "--device", "cpu", "--on", "slurm", "--jobs", "2", "--wait"
    )
    assert done.returncode == 0, done.stderr
    assert "3 of 3 runs stored" in done.stderr
    record(trial, "none; the submitter waits")


def test_a_requeue_in_the_middle_of_a_run(slurm: Cluster, trial: Trial, record):
    trial.seconds = 6.0
    trial.submit(slurm, "--jobs", 2)
    task, _ = first_running(slurm, trial)
    status = trial.sgd(slurm, "status").stdout
    assert " running " in status
    assert " in job " in status
    slurm.call("scontrol", "requeue", task)
    over(slurm)
    record(trial, "a running task is requeued")


def test_a_nodes_daemon_is_killed(slurm: Cluster, trial: Trial, record):
    """The controller gives the node up after 20 s and starts its tasks again; their processes live on beside them."""
    trial.seconds = 8.0
    trial.submit(slurm, "--jobs", 4)
    _, node = first_running(slurm, trial)
    slurm.kill(node)
    try:
        wait_for(lambda: any(state.startswith("down") for state in slurm.states()) or not slurm.queue(), PATIENCE)
    finally:
        slurm.start_node(node)
    over(slurm)
    wait_for(lambda: not list((trial.store / "partial").glob("*/*")), PATIENCE)
    record(trial, "SIGKILL to a node's daemon")
    wait_for(lambda: slurm.states() == ["idle", "idle"], 120)


def test_a_whole_node_dies(slurm: Cluster, trial: Trial, record):
    """Its daemon and all that it has started."""
    trial.seconds = 6.0
    trial.submit(slurm, "--jobs", 4)
    _, node = first_running(slurm, trial)
    tasks = {pid for pid in processes() if environment_of(pid).get("SLURMD_NODENAME") == node}
    steps = {parent_of(pid) for pid in tasks} - tasks
    slurm.kill(node)
    for pid in [*steps, *tasks]:  # the steps' own daemons first: they would report how their tasks ended
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    try:
        wait_for(lambda: any(state.startswith("down") for state in slurm.states()) or not slurm.queue(), PATIENCE)
    finally:
        slurm.start_node(node)
    over(slurm)
    record(trial, "SIGKILL to a node's daemon and all that it had started")
    wait_for(lambda: slurm.states() == ["idle", "idle"], 120)


def processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def environment_of(pid: int) -> dict[str, str]:
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(part.split("=", 1) for part in raw.split("\0") if "=" in part)


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return pid


def test_a_worker_is_killed(slurm: Cluster, trial: Trial, record):
    """As the kernel does where memory runs out: Slurm calls the task failed, and the others take its run up."""
    trial.seconds = 6.0
    trial.submit(slurm, "--jobs", 3)
    first_running(slurm, trial)
    begun = lambda path: path.parent.parent.name in trial.begun() - trial.done()
    notes = lambda: list(filter(begun, (trial.store / "partial").glob("*/*/progress.json")))
    wait_for(notes, PATIENCE)
    os.kill(json.loads(notes()[0].read_text())["pid"], signal.SIGKILL)
    over(slurm)
    record(trial, "SIGKILL to a worker")


def test_the_time_limit_is_reached(slurm: Cluster, trial: Trial, record):
    """A limit of one minute, a warning 30 s before: the tasks leave checkpoints and requeue themselves."""
    trial.runs, trial.seconds = 4, 35.0
    trial.submit(slurm, "--jobs", 4, "--engine-options", trial.options(time="1", signal="B:TERM@30"))
    over(slurm)
    assert trial.begun().total() > 4, trial.logs()
    record(trial, "the time limit is reached")


def test_the_controller_is_restarted(slurm: Cluster, trial: Trial, record):
    trial.seconds = 4.0
    trial.submit(slurm, "--jobs", 4)
    first_running(slurm, trial)
    slurm.kill("controller")
    time.sleep(2)
    slurm.start_controller()
    wait_for(lambda: slurm.states(), 120)
    over(slurm)
    record(trial, "SIGKILL to the controller, and a new one")


def test_a_full_disk_on_one_node(slurm: Cluster, trial: Trial, record):
    """Nothing is shared but the exports; what one node could not store, a second array computes."""
    scratch = trial.folder / "scratch"
    for node in ("n1", "n2"):
        (scratch / node).mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", str(scratch / "n2")], check=True)
    options = trial.folder / "options.toml"
    options.write_text(
        f'node_local = "{scratch}/$SLURMD_NODENAME"\nexports = "{trial.folder / "exports"}"\n'
    )  # fmt: skip
    try:
        trial.submit(slurm, "--jobs", 4, "--engine-options", options)
        over(slurm)
        before = Store(trial.store).ids()
        assert before < trial.wanted(), trial.logs()
        for run_id in before:
            Store(trial.store).read(run_id)
        assert "No space left on device" in trial.logs()
    finally:
        subprocess.run(["umount", str(scratch / "n2")], check=True)
    (trial.folder / "done").unlink()  # what was computed and could not be stored is computed again
    trial.submit(slurm, "--jobs", 4)
    over(slurm)
    record(trial, "a full disk on one of two nodes that share none; then a second array")


def test_two_clusters_on_one_store(slurm: Cluster, trial: Trial, record, tmp_path: Path):
    trial.seconds = 4.0
    with cluster(tmp_path / "second", "second") as other:
        trial.submit(slurm, "--jobs", 2)
        trial.submit(other, "--jobs", 2)
        over(slurm)
        over(other)
    record(trial, "two clusters work on one store")
