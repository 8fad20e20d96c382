"""Killed at any instant, by SIGKILL: resumed to the same bits, nothing lost, nothing stored twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import killed
import pytest
import toy

from suite.runner.cost import TRAIN
from suite.runner.execute import RunnerConfig, execute
from suite.runs.store import Store

pytestmark = pytest.mark.processes


def finished(root: Path):
    """Digest of the final weights, and all curves but the seconds."""
    run = Store(root).read(killed.SPEC.id)
    return (
        run.results["weights_digest"],
        run.curve("updates").to_dict("list"),
        run.curve("evaluations").drop(columns="seconds").to_dict("list"),
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("undisturbed")
    report = execute(killed.SPEC, lambda name: TRAIN, RunnerConfig(root))
    assert report.state == "stored", report.why
    return finished(root)


@pytest.mark.parametrize(
    ("kills", "seed"),
    [(6, 1), pytest.param(20, 2, marks=pytest.mark.slow), pytest.param(20, 3, marks=pytest.mark.slow)],
)
def test_a_run_killed_at_random_instants_ends_in_the_same_bits(tmp_path: Path, undisturbed, kills: int, seed: int):
    done = subprocess.run(
        [sys.executable, killed.__file__, str(tmp_path), str(kills), str(seed)],
        capture_output=True,
        text=True,
        env=toy.environment(),
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["exit"] == 0
    assert told["killed"] >= min(kills, 3)
    assert finished(tmp_path) == undisturbed
    store = Store(tmp_path)
    assert store.ids() == {killed.SPEC.id}
    assert list((tmp_path / "partial").iterdir()) == []


def test_the_command_line_resumes_after_a_kill(tmp_path: Path, sgd):
    """The first process is killed once it has left a checkpoint; the second continues from it."""
    command = [sys.executable, toy.__file__, "run", "toy/fig1", "--profile", "smoke", "--store", str(tmp_path / "s")]
    variables = {"SGD_SUITE_CHECKPOINT_SECONDS": "0", "TOY_UPDATES": "400"}
    process = subprocess.Popen(command, env=toy.environment(**variables), stderr=subprocess.DEVNULL)
    partial = tmp_path / "s" / "partial"
    try:
        while not list(partial.glob("*/*/checkpoint")):
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    (checkpoint,) = partial.glob("*/*/checkpoint")
    done = sgd("run", "toy/fig1", "--profile", "smoke", "--store", tmp_path / "s", **variables)
    assert done.returncode == 0, done.stderr
    assert "1 runs stored, 0 already there" in done.stderr
    assert not checkpoint.exists()


def test_two_processes_on_one_store_lose_and_duplicate_nothing(tmp_path: Path):
    command = [sys.executable, toy.__file__, "run", "toy/table1", "--profile", "smoke", "--device", "cpu"]
    command += ["--store", str(tmp_path / "s")]
    log = tmp_path / "log"
    env = toy.environment(TOY_SLEEP="0.7", TOY_LOG=str(log))
    both = [subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [process.communicate(timeout=600)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    computed = log.read_text().split()
    assert sorted(computed) == sorted(set(computed))
    assert len(computed) == 3
    counts = [[int(word) for word in text.splitlines()[-1].split() if word.isdigit()] for text in told]
    assert sum(stored for stored, *_ in counts) == 3
    assert all(stored + present == 3 and late == failed == 0 for stored, present, late, failed in counts)
    store = Store(tmp_path / "s")
    assert {store.read(run_id).status for run_id in store.ids()} == {"finished"}


def test_a_worker_that_is_killed_costs_its_run_one_attempt(tmp_path: Path, sgd):
    """Two workers; one run kills the process that computes it, the first time."""
    root = tmp_path / "s"
    script = (
        "import sys, toy; toy.install()\n"
        "from pathlib import Path\n"
        "from suite.papers.catalogue import experiment\n"
        "from suite.runner.execute import RunnerConfig, execute_all\n"
        "from suite.spec import RunSpec\n"
        "if __name__ == '__main__':\n"
        "    specs = [RunSpec('toy/draw', {'does': 'die'}, 9)] + [RunSpec('toy/draw', {'n': n}) for n in range(4)]\n"
        "    for r in execute_all(specs, experiment, RunnerConfig(Path(sys.argv[1])), workers=2):\n"
        "        print(r.spec.seed, r.state, r.why)\n"
    )
    (tmp_path / "two_workers.py").write_text(script)
    run = [sys.executable, str(tmp_path / "two_workers.py"), str(root)]
    first, second = (
        subprocess.run(run, capture_output=True, text=True, env=toy.environment(), timeout=600) for _ in range(2)
    )
    assert first.returncode == 0, first.stderr
    lines = first.stdout.splitlines()
    assert [line for line in lines if line.startswith("9")] == [
        "9 failed its worker process died; run again to resume it"
    ]
    assert sum("stored" in line for line in lines) == 4
    assert [line.split()[1] for line in sorted(second.stdout.splitlines())] == ["present"] * 4 + ["stored"]
    assert len(Store(root).ids()) == 5
    assert first.stderr == ""


def test_what_is_timed_comes_after_the_others_and_alone(tmp_path: Path):
    script = (
        "import sys, toy; toy.install()\n"
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from suite.papers.catalogue import experiment\n"
        "from suite.runner.execute import RunnerConfig, execute_all\n"
        "from suite.spec import RunSpec\n"
        "def resolve(name):\n"
        "    return replace(experiment('toy/draw'), timed=name == 'toy/timed')\n"
        "if __name__ == '__main__':\n"
        "    specs = [RunSpec(f'toy/{name}', {'sleep': 0.3}, s) for name in ('timed', 'draw') for s in range(3)]\n"
        "    for r in execute_all(specs, resolve, RunnerConfig(Path(sys.argv[1])), workers=2):\n"
        "        print(r.spec.id, r.spec.experiment, r.state)\n"
    )
    (tmp_path / "timed.py").write_text(script)
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, str(tmp_path / "timed.py"), str(tmp_path / "s")],
        capture_output=True,
        text=True,
        env=toy.environment(TOY_LOG=str(log), TOY_DONE=str(log)),
        timeout=600,
    )
    assert done.stderr == ""
    names = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()}
    moments = log.read_text().split()  # each run when it begins and when it is done
    assert [names[run] for run in moments] == ["toy/draw"] * 6 + ["toy/timed"] * 6
    assert moments[6::2] == moments[7::2]


def test_workers_leave_when_their_parent_is_killed(tmp_path: Path):
    command = [sys.executable, toy.__file__, "run", "toy/table1", "--profile", "smoke", "--workers", "2"]
    command += ["--device", "cpu"]
    log = tmp_path / "log"
    process = subprocess.Popen(
        [*command, "--store", str(tmp_path / "s")],
        env=toy.environment(TOY_SLEEP="2", TOY_LOG=str(log)),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while not log.exists() or len(log.read_text().split()) < 2:
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    for _ in range(1200):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    pytest.fail("worker processes outlived their parent by more than 60 s")
