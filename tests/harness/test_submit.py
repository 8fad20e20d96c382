"""What ``run --on`` hands to an engine, by an engine that only writes down what it was given."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import toy

from suite.commands import submit
from suite.commands.plan import Planned
from suite.commands.status import job_states, status
from suite.commands.submit import Request, jobs_for, read_options, submit_selection, this_program
from suite.engines import INDEX, EngineError, Job
from suite.runs.store import Store
from suite.spec import RunSpec

GIB = 2**30


class Cluster:
    """Takes every job, and is done with all of them after as many looks as ``busy`` says."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.busy, self.looks = 0, 0

    def script(self, job: Job) -> str:
        return f"script of {job.name}"

    def submit(self, job: Job) -> str:
        assert job.logs.is_dir()
        self.jobs.append(job)
        return f"job-{len(self.jobs)}"

    def states(self, jobs: Sequence[str]) -> dict[str, int]:
        self.looks += 1
        return {"running": len(jobs)} if self.looks <= self.busy else {}


@pytest.fixture
def cluster(papers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(submit, "engine", lambda name: made)
    monkeypatch.setattr("suite.commands.status.engine", lambda name: made)
    monkeypatch.setattr(sys, "argv", ["sgd-suite"])
    for name in ("SGD_SUITE_DATA", "TOY_RUNS", "TOY_SLEEP", "TOY_DOES"):
        monkeypatch.delenv(name, raising=False)
    return made


def hand_over(
    to: Request,
    *selectors: str,
    profile: str = "smoke",
    device: str = "cpu",
    workers: int = 1,
    data: Path | None = None,
) -> int:
    chosen = selectors or ("toy/table1",)
    return submit_selection(chosen, profile, Path("store"), data, device, workers, to)


def store_all() -> None:
    store = Store(Path("store"), create=True)
    for spec in toy.runs("smoke")["draws"]:
        store.commit(spec.id, toy.files_of(spec, value=1.0))


@pytest.mark.parametrize(
    ("runs", "workers", "asked", "jobs"), [(40, 1, None, 16), (5, 2, None, 3), (1, 4, None, 1), (40, 2, 30, 30)]
)
def test_as_many_workers_as_have_something_to_do_but_no_more_than_16_unless_asked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, runs: int, workers: int, asked: int | None, jobs: int
):
    monkeypatch.setenv("TOY_RUNS", str(runs))
    assert hand_over(Request("x", asked), workers=workers) == 0
    assert [(job.workers, job.cores) for job in cluster.jobs] == [(jobs, workers)]


@pytest.mark.parametrize(("device", "gpus"), [("cpu", 0), ("auto", 0), ("cuda", 1)])
def test_a_gpu_is_asked_for_where_gradients_are_wanted_on_one(cluster: Cluster, device: str, gpus: int):
    hand_over(Request("x"), device=device)
    assert [job.gpus for job in cluster.jobs] == [gpus]


def test_what_was_submitted_is_named_counted_and_known_to_status(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
):
    assert hand_over(Request("x", 2)) == 0
    told = capsys.readouterr()
    assert told.out == "job-1\n"
    assert told.err == "3 runs left to 1 jobs; see `status --store store`\n"
    assert cluster.looks == 0
    assert cluster.jobs[0].after == ()
    found = status(Path("store"))
    assert (found["counts"]["queued"], found["jobs"]) == (3, {"x": {}})


def test_a_dry_run_shows_scripts_and_leaves_no_store(cluster: Cluster, capsys: pytest.CaptureFixture[str]):
    assert hand_over(Request("x", dry_run=True)) == 0
    assert capsys.readouterr().out == "script of sgd-suite\n"
    assert cluster.jobs == []
    assert not Path("store").exists()


@pytest.mark.parametrize("dry_run", [True, False])
def test_nothing_is_handed_over_where_all_is_stored(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], dry_run: bool
):
    store_all()
    assert hand_over(Request("x", dry_run=dry_run)) == 0
    assert tuple(capsys.readouterr()) == ("", "nothing to do: all 3 runs are stored\n")
    assert cluster.jobs == []


def test_runs_without_their_data_are_left_out(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    hand_over(Request("x", wait=True), "toy/table1", "toy/fig2", profile="paper", data=tmp_path)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("1 runs left out: imagenet is not below ")
    assert told[1].startswith("3 runs left to 1 jobs")
    assert told[2] == "0 of 3 runs stored"


@pytest.mark.parametrize(
    ("done", "code", "told"), [(True, 0, "3 of 3 runs stored"), (False, 1, "0 of 3 runs stored")]
)
def test_who_waits_looks_until_the_workers_are_gone_and_counts(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    done: bool,
    code: int,
    told: str,
):
    naps = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if done and len(naps) == 2:
            store_all()

    cluster.busy = 2
    monkeypatch.setattr(submit, "time", SimpleNamespace(time=time.time, sleep=sleep))
    assert hand_over(Request("x", wait=True)) == code
    assert (len(naps), cluster.looks) == (2, 3)
    assert capsys.readouterr().err.splitlines()[-1] == told


def test_without_a_common_disk_the_last_job_waits_for_the_others_and_merges(cluster: Cluster, tmp_path: Path):
    (tmp_path / "mine.toml").write_text('node_local = "/scratch"\nexports = "out"\ntime = "10"\n')
    hand_over(Request("x", 2, tmp_path / "mine.toml"))
    work, merge = cluster.jobs
    assert (work.after, merge.after) == ((), ("job-1",))
    assert (work.logs, merge.logs) == (tmp_path / "store" / "jobs",) * 2
    program = [sys.executable, str(tmp_path / "sgd-suite")]
    here = ["--store", f"/scratch/sgd-suite-{INDEX}"]
    wanted = ["toy/table1", "--profile", "smoke"]
    assert work.commands == [
        [*program, "run", *wanted, "--device", "cpu", "--workers", "1", *here, "--share", f"{INDEX}/2"],
        [*program, "export", *wanted, *here, "--out", str(tmp_path / "out" / f"{INDEX}.zip")],
    ]
    store = ["--store", str(tmp_path / "store")]
    assert merge.commands == [[*program, "merge", str(tmp_path / "out" / f"{n}.zip"), *store] for n in range(2)]
    assert job_states(tmp_path / "store") == {"x": {}}


def planned(*needs: tuple[float, int]) -> list[Planned]:
    """Runs of so many seconds and bytes."""
    return [Planned(RunSpec("toy/draw", {}, i), *need, (), ("toy/table1",)) for i, need in enumerate(needs)]


def test_arrays_of_other_memory_do_not_wait_for_one_another(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    left = planned((1.0, GIB), (1.0, 2 * GIB), (1.0, 4 * GIB))
    monkeypatch.setattr(submit, "plan", lambda selection, profile: left)
    hand_over(Request("x"))
    assert [(job.memory // GIB, job.after) for job in cluster.jobs] == [(4, ()), (2, ()), (1, ())]


def test_a_node_s_worker_asks_for_the_memory_of_the_largest_run_times_its_processes(tmp_path: Path):
    options = {"node_local": "/scratch", "exports": str(tmp_path)}
    base = ["sgd", "run", "--profile", "smoke"]
    work, _ = jobs_for(planned((1.0, 1), (1.0, 3 * GIB)), base, tmp_path, 1, 2, 0, options)
    assert (work.memory, work.cores) == (8 * GIB, 2)


def test_workers_are_shared_out_by_estimated_seconds_at_least_one_each():
    shares = lambda *needs: [job.workers for job in jobs_for(planned(*needs), ["run"], Path("s"), 8, 1, 0, {})]
    assert shares((1.0, GIB), (3.0, 2 * GIB)) == [6, 2]
    assert shares((0.5, GIB), (0.5, GIB), (1.0, 2 * GIB), (2.0, 2 * GIB)) == [6, 2]
    assert shares((1000.0, GIB), (1.0, 2 * GIB)) == [1, 8]


def test_what_is_no_toml_is_no_file_of_options(tmp_path: Path):
    assert read_options(None) == {}
    (tmp_path / "good.toml").write_text('partition = "gpu"\n')
    assert read_options(tmp_path / "good.toml") == {"partition": "gpu"}
    (tmp_path / "bad.toml").write_text("partition = gpu\n")
    for name in ("bad.toml", "absent.toml"):
        with pytest.raises(EngineError, match=f"{name} cannot be read as an engine's options"):
            read_options(tmp_path / name)


@pytest.mark.parametrize(
    ("started", "words"), [("/x/suite/__main__.py", ["-m", "suite"]), ("bin/sgd-suite", ["{here}/bin/sgd-suite"])]
)
def test_a_worker_is_started_as_this_program_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: str, words: list[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [started, "run", "toy"])
    assert this_program() == [sys.executable, *(word.format(here=tmp_path) for word in words)]
