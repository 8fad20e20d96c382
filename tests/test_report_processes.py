"""Pages made in several processes are those that one makes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from suite.papers.evidence import committed, read_once
from suite.report.site import build
from suite.runs.archive import Layered
from suite.runs.environment import ROOT

CHEAP = ("isgd/fig6c", "crossbow/fig8")  # with and without a figure


def opened() -> Layered:
    """The evidence; in every process anew."""
    return Layered(committed())


@pytest.mark.processes
def test_several_processes_make_the_same_pages_in_order(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(build, "FEW", 1)
    todo = [build.PagePlace(name) for name in CHEAP]
    # this process has seen other tests
    with ProcessPoolExecutor(1, get_context("spawn"), build._begin, (opened,)) as pool:
        alone = pool.submit(build._make, todo).result()
    with build.makers(read_once(opened()), todo, opened) as made:
        assert type(made).__name__ != "generator" or made.gi_code.co_name != "<genexpr>"  # not in this process
        several = list(made)
    assert [found for found, *_ in several] == [found for found, *_ in alone]
    pages = [(a, b) for (_, a, _), (_, b, _) in zip(alone, several, strict=True)]
    other = [name for a, b in pages for name in a | b if a.get(name) != b.get(name)]
    assert other == []
    assert [{path.partition(".")[0] for path in files} for _, files, _ in several] == [{name} for name in CHEAP]


def workers_of(parent: int) -> set[int]:
    """Processes that a report has spawned to make pages."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent and "spawn_main" in (entry.parent / "cmdline").read_text():
                found.add(int(entry.parent.name))
    return found


@pytest.mark.processes
def test_no_worker_outlives_a_report_that_is_killed(tmp_path):
    """Workers hold the report's stderr, so it ends when the last of them has."""
    two_cores = "import os; os.sched_getaffinity = lambda process: {0, 1}; import suite.cli; suite.cli.main()"
    command = [sys.executable, "-c", two_cores, "report", "--out", str(tmp_path / "site")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while len(workers_of(process.pid)) < 2 and process.poll() is None:
            time.sleep(0.2)
        process.kill()
        _, said = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    assert "Traceback" not in said
