"""Killed by SIGKILL: a command, one of two on a store, a worker of a pool, and the parent of workers."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
import toy

from suite.runner.execute import RunnerConfig, execute_all
from suite.runs.store import Store
from suite.spec import RunSpec

pytestmark = pytest.mark.processes

SMOKE = ("--profile", "smoke", "--device", "cpu", "--store", "s")


def test_two_processes_on_one_store_lose_and_duplicate_nothing(tmp_path: Path, started):
    variables = {"TOY_SLEEP": "0.7", "TOY_LOG": str(tmp_path / "log")}
    both = [started("run", "toy/table1", *SMOKE, **variables) for _ in range(2)]
    assert [command.wait() for command in both] == [0, 0], [command.told for command in both]
    computed = (tmp_path / "log").read_text().split()
    assert len(computed) == len(set(computed)) == 3
    counts = [[int(word) for word in each.told.splitlines()[-1].split() if word.isdigit()] for each in both]
    assert sum(stored for stored, *_ in counts) == 3
    assert all(stored + present == 3 and late == failed == 0 for stored, present, late, failed in counts)
    store = Store(tmp_path / "s")
    assert {store.read(run_id).status for run_id in store.ids()} == {"finished"}


def test_a_worker_that_is_killed_costs_its_run_one_attempt(tmp_path: Path):
    """Two workers; two runs kill the process that computes them, the first time, and others take their places."""
    deadly = [RunSpec("toy/draw", {"does": "die"}, seed) for seed in (8, 9)]
    specs = [*deadly, *(RunSpec("toy/draw", {"n": n}) for n in range(3))]
    once, again = (
        {report.spec: report for report in execute_all(specs, toy.resolve, RunnerConfig(tmp_path), workers=2)}
        for _ in range(2)
    )
    assert [once[spec].state for spec in specs] == ["failed"] * 2 + ["stored"] * 3
    assert {once[spec].why for spec in deadly} == {"its worker process died; run again to resume it"}
    assert [again[spec].state for spec in specs] == ["stored"] * 2 + ["present"] * 3
    assert Store(tmp_path).ids() == {spec.id for spec in specs}


def test_workers_leave_when_their_parent_is_killed(tmp_path: Path, started):
    log = tmp_path / "log"
    parent = started("run", "toy/table1", *SMOKE, "--workers", "2", TOY_SLEEP="2", TOY_LOG=str(log))
    while not log.exists() or len(log.read_text().split()) < 2:
        assert parent.poll() is None, parent.told
        time.sleep(0.02)
    parent.send(signal.SIGKILL)
    parent.wait()
    assert parent.gone(), "worker processes outlived their parent"
