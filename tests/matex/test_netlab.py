"""The lab of hosts: what its links let through, and that nothing of it stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import bodies
import pandas as pd
import psutil
import pytest

from suite.communication import link as netlab
from suite.communication.launch import spawn
from suite.experiment import Context, in_lab
from suite.runs.run import Outcome
from suite.spec import RunSpec

WHY_NOT = netlab.probe()
needs_lab = pytest.mark.skipif(bool(WHY_NOT), reason=f"no shaped link here: {WHY_NOT}")


def namespaces() -> set[int]:
    """Network namespaces that a process is in or holds."""
    found = set()
    for pid in psutil.pids():
        for each in (Path(f"/proc/{pid}/ns/net"), *Path("/proc").glob(f"{pid}/fd/*")):
            with contextlib.suppress(OSError):
                if os.readlink(each).startswith("net:["):
                    found.add(os.stat(each).st_ino)
    return found


def servers() -> set[int]:
    """What multiprocessing keeps running until this process ends."""
    kept = ("forkserver", "resource_tracker")
    children = psutil.Process().children(recursive=True)
    return {child.pid for child in children if any(name in " ".join(child.cmdline()) for name in kept)}


@needs_lab
@pytest.mark.processes
def test_a_ring_of_three_takes_what_the_rate_allows_and_leaves_nothing():
    """Each of three workers sends two thirds of 2 MB twice, through a bridge, less what the bucket holds."""
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    with netlab.lab(3, 1e8) as lab:
        inside = {os.stat(network).st_ino for network in lab}
        seconds = spawn(bodies.timed_exchange, 3, timeout=30, lab=lab)[0]
        assert inside < namespaces()
    assert seconds > 0.9 * (2 * 2 / 3 * 2e6 - 128_000) * 8 / 1e8
    assert not inside & namespaces()
    assert {p.pid for p in psutil.Process().children(recursive=True)} - before <= servers()


@needs_lab
def test_nothing_of_a_lab_outlives_a_process_that_was_killed(tmp_path):
    script = f"""
import os, time
from suite.communication import link
with link.lab(2) as lab:
    open({str(tmp_path / "made")!r}, "w").write(" ".join(str(os.stat(n).st_ino) for n in lab))
    time.sleep(60)
"""
    around = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", script], env=around)
    while not (tmp_path / "made").exists() or not (tmp_path / "made").read_text():
        assert process.poll() is None
        time.sleep(0.01)
    made = {int(each) for each in (tmp_path / "made").read_text().split()}
    assert made <= namespaces()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not made & namespaces()


@needs_lab
def test_this_process_stays_where_it_was_and_a_failing_lab_is_removed():
    here = lambda: os.stat("/proc/thread-self/ns/net").st_ino
    home, seen = here(), []

    def fail() -> None:
        with netlab.lab() as lab, netlab.inside(lab[1]):
            seen.append(here())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert here() == home != seen[0]
    assert seen[0] not in namespaces()


def test_a_machine_that_cannot_shape_a_link_says_what_it_lacks(monkeypatch):
    """Network namespaces alone are not enough."""

    def call(*command: str) -> None:
        if "tbf" in command:
            raise netlab.NoLab("tc knows no tbf")

    monkeypatch.setattr(netlab, "_call", call)
    monkeypatch.setattr(netlab, "_system", lambda call, *arguments: None)
    monkeypatch.setattr(netlab.sys, "platform", "linux")
    monkeypatch.setattr(netlab.shutil, "which", lambda name: name)
    assert netlab.probe() == "tc knows no tbf"
    monkeypatch.setattr(netlab.shutil, "which", lambda name: None if name == "tc" else name)
    assert "iproute2" in netlab.probe()


def test_who_may_not_make_namespaces_is_told(monkeypatch):
    def refuse(*command: object) -> None:
        raise netlab.NoLab("network namespaces need root")

    monkeypatch.setattr(netlab, "_system", refuse)
    monkeypatch.setattr(netlab.sys, "platform", "linux")
    monkeypatch.setattr(netlab.shutil, "which", lambda name: name)
    assert netlab.probe() == "network namespaces need root"


def test_a_command_that_fails_is_told_with_the_first_line_that_it_said():
    with pytest.raises(netlab.NoLab, match=r": no such device$"):
        netlab._call(sys.executable, "-c", "import sys; print('out'); sys.exit('no such device\\nnor other')")
    with pytest.raises(netlab.NoLab, match=r": exit status 3$"):
        netlab._call(sys.executable, "-c", "import sys; sys.exit(3)")


def test_a_run_that_finds_no_lab_stores_the_reason(tmp_path):
    table = pd.DataFrame({"seconds": [1.0]})

    @in_lab
    def body(spec: RunSpec, context: Context) -> Outcome:
        if spec.settings["root"]:
            return Outcome("finished", {"best": 1.0}, {"hosts": table})
        raise netlab.NoLab("no root")

    there, here = (body(RunSpec("toy/run", {"root": root}), Context(tmp_path, {})) for root in (True, False))
    assert (there.results, there.curves) == ({"skipped": "", "best": 1.0}, {"hosts": table})
    assert (here.status, here.results) == ("finished", {"skipped": "no root"})
