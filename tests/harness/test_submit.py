"""What ``run --on`` hands to an engine, by an engine that only writes down what it was given."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import toy

from suite.commands import run
from suite.commands.options import Request, RunOptions
from suite.commands.run import submit_artifacts
from suite.commands.status import job_states
from suite.engines import ENGINES, INDEX, EngineError, Job
from suite.papers.catalogue import select
from suite.runs.store import Store


class Cluster:
    """Takes every job, and is done with all of them after ``busy`` looks, of which it answers one not."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.busy, self.looks, self.silent = 0, 0, 0

    def script(self, job: Job) -> str:
        return f"script of {job.name}"

    def submit(self, job: Job) -> str:
        assert job.logs.is_dir()
        self.jobs.append(job)
        return f"job-{len(self.jobs)}"

    def states(self, jobs: Sequence[str]) -> dict[str, int]:
        self.looks += 1
        if self.looks == self.silent:
            raise EngineError("x: no answer")
        return {"running": len(jobs)} if self.looks <= self.busy else {}


@pytest.fixture
def cluster(papers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(ENGINES, "x", lambda: made)
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
    options = RunOptions(profile, Path("store"), data, device, workers)
    return submit_artifacts(select(chosen), ["run", *chosen], chosen, options, to)


def store_all() -> None:
    store = Store(Path("store"), create=True)
    for spec in toy.runs("smoke")["draws"]:
        store.commit(spec.id, toy.files_of(spec, value=1.0))


@pytest.mark.parametrize(
    ("runs", "workers", "asked", "jobs"),
    [(40, 1, None, 16), (5, 2, None, 3), (1, 4, None, 1), (40, 2, 30, 30), (4, 1, 32, 4)],
)
def test_as_many_workers_as_have_something_to_do_and_at_most_16_unless_asked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, runs: int, workers: int, asked: int | None, jobs: int
):
    monkeypatch.setenv("TOY_RUNS", str(runs))
    assert hand_over(Request("x", asked), workers=workers) == 0
    assert [(job.workers, job.cores) for job in cluster.jobs] == [(jobs, workers)]


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

    cluster.busy, cluster.silent = 2, 1
    monkeypatch.setattr(run, "time", SimpleNamespace(time=time.time, sleep=sleep))
    assert hand_over(Request("x", wait=True)) == code
    assert (len(naps), cluster.looks) == (2, 3)
    assert capsys.readouterr().err.splitlines()[-1] == told


def test_without_a_common_disk_the_last_job_waits_for_the_others_and_merges(cluster: Cluster, tmp_path: Path):
    (tmp_path / "mine.toml").write_text('node_local = "/scratch/$USER/${NODE}"\nexports = "out"\ntime = "10"\n')
    hand_over(Request("x", 2, tmp_path / "mine.toml"))
    work, merge = cluster.jobs
    assert (work.after, merge.after) == ((), ("job-1",))
    assert (work.workers, merge.workers) == (2, 1)
    assert (work.logs, merge.logs) == (tmp_path / "store" / "jobs",) * 2
    program = [sys.executable, str(tmp_path / "sgd-suite")]
    here = ["--store", f"/scratch/{{env:USER}}/{{env:NODE}}/sgd-suite-{INDEX}"]
    wanted = ["toy/table1", "--profile", "smoke"]
    assert work.commands == [
        [*program, "run", *wanted, "--device", "cpu", "--workers", "1", *here, "--share", f"{INDEX}/2"],
        [*program, "export", *wanted, *here, "--out", str(tmp_path / "out" / f"{INDEX}.zip")],
    ]
    store = ["--store", str(tmp_path / "store")]
    assert merge.commands == [[*program, "merge", str(tmp_path / "out" / f"{n}.zip"), *store] for n in range(2)]
    assert work.options == merge.options == {"time": "10"}
    assert job_states(tmp_path / "store") == {"x": {}}
    (tmp_path / "mine.toml").write_text('node_local = "/scratch"\n')
    with pytest.raises(EngineError, match="node_local needs exports"):
        hand_over(Request("x", 2, tmp_path / "mine.toml"))
