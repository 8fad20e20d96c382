"""What guards the project: canaries, planted faults, the GPU job, workflows, and a machine that has little."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest
import torch

from ci import canaries, gpu, guard, issue, nightly, summary
from suite.runs import archive
from suite.runs.environment import ROOT, machine_class
from suite.runs.run import DamagedRun, Outcome, StoreError, encode, verified
from suite.speed import baselines

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")


class Memory:
    """Canaries with made-up numbers, on a machine with a name."""

    def __init__(self, change: float = 0.0, noise: float = 0.0, cpu: str = "one"):
        where = {"machine": {"cpu": cpu}, "device": {}, "versions": {"torch": "2.13.0"}}
        self.runs = {}
        for spec in canaries.specs():
            loss = 1.0 + 0.1 * spec.seed + change + noise * (-1) ** spec.seed
            name = "updates" if "monitors" in spec.settings else "train_loss"
            files = encode(spec, where, Outcome("finished", {name: loss}))
            self.runs[spec.id] = verified(spec.id, files)

    def ids(self) -> set[str]:
        return set(self.runs)

    def read(self, run_id: str):
        return self.runs[run_id]


@pytest.mark.parametrize(
    ("new", "reds"),
    [
        (Memory(), 0),
        (Memory(noise=1e-6), 1),  # one bit on the same processor is red
        (Memory(noise=1e-6, cpu="two"), 0),  # rounding elsewhere is not
        (Memory(noise=0.05, cpu="two"), 0),  # nor is what the spread explains
        (Memory(change=1e-6, cpu="two"), 0),  # nor a steady bias that is negligible beside the spread
        (Memory(change=-0.02, noise=0.002, cpu="two"), 5),  # a fall in all five papers is
        (Memory(change=0.02, noise=0.002, cpu="two"), 5),
    ],
)
def test_canaries_are_red_for_a_changed_bit_here_and_for_a_moved_mean_elsewhere(new: Memory, reds: int):
    red, said = canaries.check(Memory(), new)
    assert len(red) == reds, red
    assert "40 canaries compared" in said[0]


def test_a_canary_that_is_gone_is_red():
    fewer = Memory()
    fewer.runs.popitem()
    assert "accept them anew" in canaries.check(Memory(), fewer)[0][0]


def test_each_paper_has_canaries_and_the_committed_baseline_is_theirs():
    assert list(canaries.CANARIES) == ["isgd", "inverse_law", "rudra", "matex_agd", "crossbow"]
    wanted = {spec.id for spec in canaries.specs()}
    committed = sorted(canaries.BASELINES.glob("*/canaries.zip"))
    assert committed
    for path in committed:
        assert canaries.open_runs(path).ids() == wanted, path


def scripted(folder: Path, code: str, name: str = "stage", share: float = 1.0) -> gpu.Stage:
    return gpu.Stage(name, share, lambda seconds: [sys.executable, "-c", code])


@pytest.mark.processes
def test_the_gpu_job_ends_what_is_late_and_keeps_what_there_is(tmp_path: Path):
    """The late stage writes before it hangs; its child hangs too, and must go with it."""
    hang = "import subprocess, sys, time; print('begun', flush=True); subprocess.run(['sleep', '600'])"
    planned = [
        scripted(tmp_path, "print('fine')", "first", 0.01),
        scripted(tmp_path, "raise SystemExit(7)", "red", 0.01),
        scripted(tmp_path, hang, "late", 1.0),
    ]
    ended = gpu.go(planned, gpu.EXPORT_SECONDS + 4.0, tmp_path, None)
    assert [(each.name, each.code, each.failed) for each in ended if each.name != "first"] == [
        ("red", 7 if ended[1].code is not None else None, ended[1].code is not None),
        ("late", None, False),
    ]
    assert (tmp_path / "late.log").read_text().startswith("begun")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [stage["name"] for stage in summary["stages"]] == ["first", "red", "late"]
    assert {"machine", "versions", "revision"} <= set(summary)


@pytest.mark.processes
def test_a_test_that_failed_is_red_although_time_ran_out(tmp_path: Path):
    """The lines are pytest's own; after one of them the stage hangs."""
    file = tmp_path / "test_both.py"
    file.write_text("def test_fine(): pass\ndef test_wrong(): assert False\n")
    done = subprocess.run([*gpu.PYTHON, "pytest", str(file), *gpu.SHOWN], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if "::test_" in line][:2]
    for line, failed in zip(lines, (False, True), strict=True):
        hang = scripted(tmp_path, f"import time; print({line!r}, flush=True); time.sleep(600)")
        ended = gpu.perform(dataclasses.replace(hang, red=gpu.RED), 5.0, tmp_path / "stage.log", None)
        assert (ended.code, ended.failed) == (None, failed), line


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without CUDA")
@pytest.mark.parametrize("works", [True, False])
def test_several_processes_share_a_card_by_a_daemon_that_ends_with_them(works, tmp_path: Path, monkeypatch, capsys):
    """The program is a script that writes down how it was called; what it does on a card is not seen here."""
    told, program = tmp_path / "told", tmp_path / "nvidia-cuda-mps-control"
    record = f'echo "$* $(test $# -gt 0 || cat) $CUDA_MPS_PIPE_DIRECTORY" >> {told}'
    program.write_text(f"#!/bin/sh\n{record}\nexit {0 if works else 1}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for device, workers in (("cpu", 4), ("cuda", 1)):
        with gpu.shared_card(device, workers):
            assert not told.exists()
    with contextlib.suppress(KeyboardInterrupt), gpu.shared_card("cuda", 4):
        assert ("CUDA_MPS_PIPE_DIRECTORY" in os.environ) is works
        raise KeyboardInterrupt
    assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
    calls = [line.split() for line in told.read_text().splitlines()]
    assert [call[0] for call in calls] == ["-d", "quit"][: 1 + works]
    assert len({call[1] for call in calls}) == 1, "each speaks to the same daemon"
    assert ("take turns" in capsys.readouterr().err) is not works


def test_the_gpu_job_says_where_there_is_no_gpu(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gpu", "--out", str(tmp_path / "out")])
    assert gpu.main() == 2
    assert "no usable CUDA device" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.processes
def test_an_hour_of_claims_says_what_it_promises_and_leaves_what_the_next_one_needs(monkeypatch, tmp_path, capsys):
    """A dry run on a CPU: one artifact of one run, beside a run that an earlier machine had begun."""
    monkeypatch.setattr(gpu, "committed_ids", set)
    begun = tmp_path / "before" / "store" / "partial" / ("ab" * 10) / "x"
    begun.mkdir(parents=True)
    (begun / "checkpoint.safetensors").write_bytes(b"far along")
    (tmp_path / "before" / "store" / "runs").mkdir()
    gpu.take_home(tmp_path / "before" / "store", tmp_path / "before", "smoke")
    arguments = ["--claims", "--device", "cpu", "--profile", "smoke", "--budget", "500", "--workers", "2"]
    places = ["--out", str(tmp_path / "out"), "--store", str(tmp_path / "store"), "--after", str(tmp_path / "before")]
    only = "crossbow/alg-scheduler"
    asked = gpu.arguments().parse_args(["--device", "cpu", "--only", only, "--workers", "2", "--budget", "0.001"])
    asked.profile, asked.store = "smoke", tmp_path / "none"
    assert gpu.promise(asked) == ([], 2)
    chosen = ["--only", only, "--stages", "first,runs"]
    monkeypatch.setattr(sys, "argv", ["ci.gpu", *arguments, *places, *chosen])
    assert gpu.main() == 0
    said = capsys.readouterr().out
    assert "2 runs side by side" in said
    assert "promised 1 artifacts; the runs of 1 are stored" in said
    assert (tmp_path / "out" / "runs.zip").exists()
    assert archive.take(tmp_path / "out" / "unfinished.zip", tmp_path / "next") == ["ab" * 10]


def test_a_file_of_runs_under_way_leads_nowhere_else(tmp_path):
    for name in (f"{'ab' * 10}/../evil", f"{'ab' * 10}/x/../../evil", "evil/x/y", f"{'ab' * 10}/y"):
        with zipfile.ZipFile(tmp_path / "bad.zip", "w") as bad:
            bad.writestr(name, b"")
        with pytest.raises(DamagedRun, match="is not a file of a run under way"):
            archive.take(tmp_path / "bad.zip", tmp_path / "store")
    (tmp_path / "bad.zip").write_bytes(b"no zip")
    with pytest.raises(StoreError, match="holds no runs under way"):
        archive.take(tmp_path / "bad.zip", tmp_path / "store")


Session = dict[str, list[float]]  # workload -> seconds of our side in each round


class Sessions:
    """In place of measuring: sessions of a guard, one after the other, in which a plain side takes 1 s a round."""

    def __init__(self, folder: Path):
        self.folder, self.asked = folder, list[str]()
        self.next: Iterator[Session] = iter(())

    def measure(self, path: Path, only: str) -> Path:
        self.asked.append(only)
        return self.write(path, next(self.next))

    def write(self, path: Path, session: Session) -> Path:
        sides = lambda ours: {"ours": {"seconds": ours}, "plain": {"seconds": [1.0] * len(ours)}}
        rows = {name: {"family": "training", "sides": sides(ours)} for name, ours in session.items()}
        told = {"format": 1, "machine": {"class": "here"}, "versions": {"torch": "a"}, "workloads": rows}
        path.write_text(json.dumps(told))
        return path

    def accept(self, sessions: list[Session], anew: bool = False) -> None:
        guard.accept([self.write(self.folder / f"{i}.json", each) for i, each in enumerate(sessions)], "", anew)


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    made = Sessions(tmp_path)
    monkeypatch.setattr(guard, "BASELINES", tmp_path / "baselines")
    monkeypatch.setattr(guard, "measure", made.measure)
    return made


def test_the_guard_remembers_what_was_accepted_and_finds_what_crept_in(tmp_path: Path, sessions: Sessions):
    """A baseline, then one that is 8% slower and was accepted all the same."""
    timed = lambda level: [{"w": [level + 0.001 * (place % 3)] * 20} for place in range(10)]
    sessions.next = repeat({"w": [1.08] * 20})
    sessions.accept(timed(1.0))
    sessions.accept(timed(1.08))
    assert guard.gate(tmp_path, "") == 1
    found = json.loads((tmp_path / "gate.json").read_text())
    assert (found["regressions"], len(found["creeping"])) == ([], 1)
    assert found["creeping"][0].startswith("w: +7.9% by wall time, at least ")
    assert summary.main(["--gate", str(tmp_path / "gate.json")]) == 1
    assert list(issue.lines(tmp_path)) == found["creeping"]
    sessions.accept(timed(1.08), anew=True)
    assert guard.gate(tmp_path, "") != 1


def test_what_the_gate_could_not_tell_is_measured_after_an_alarm_elsewhere_too(tmp_path: Path, sessions: Sessions):
    """The alarm of ``a`` does not stand; of ``b`` the first session has too few rounds to tell anything."""
    rounds = lambda level, n: [level + 0.001 * (i % 3) for i in range(n)]
    alarm = {"a": rounds(1.5, 20), "b": rounds(1.0, 1)}
    sessions.next = iter([alarm, {"a": rounds(1.0, 200)}, {"b": rounds(1.0, 20)}])
    sessions.accept([{"a": rounds(1.0, 20), "b": rounds(1.0, 20)}] * 10)
    assert guard.gate(tmp_path, "") == 0
    assert sessions.asked == ["", "a", "b"]


def test_no_baseline_is_made_of_a_session_in_which_a_workload_failed(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(guard.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    assert guard.measure(tmp_path, "") == tmp_path
    with pytest.raises(baselines.GateError, match="a workload failed"):
        guard.measure(tmp_path, "", whole=True)


def test_a_workload_that_does_not_exist_is_named(tmp_path: Path, monkeypatch):
    code = pytest.ExitCode.NO_TESTS_COLLECTED
    monkeypatch.setattr(guard.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, code))
    with pytest.raises(baselines.GateError, match="no workload's name has 'nonsense'"):
        guard.measure(tmp_path / "none.json", "nonsense")


def test_canaries_are_compared_with_a_baseline_outside_of_the_checkout(tmp_path: Path, monkeypatch, capsys):
    committed = next(iter(sorted(canaries.BASELINES.glob("*/canaries.zip"))))
    kept = tmp_path / machine_class() / committed.name
    kept.parent.mkdir()
    kept.write_bytes(committed.read_bytes())
    monkeypatch.setattr(canaries, "BASELINES", tmp_path)
    monkeypatch.setattr(canaries, "train", lambda *_: canaries.open_runs(committed))
    monkeypatch.setattr(sys, "argv", ["ci.canaries"])
    assert canaries.main() == 0
    assert capsys.readouterr().out.startswith(f"baseline {kept}\n40 canaries compared")


def test_the_first_night_makes_the_baseline_and_the_second_does_not(tmp_path, monkeypatch, capsys):
    """With ``--first``, where this machine class has none."""
    asked = []
    monkeypatch.setattr(guard, "BASELINES", tmp_path)
    monkeypatch.setattr(guard.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0))
    monkeypatch.setattr(guard, "measure", lambda path, only, whole: path)
    monkeypatch.setattr(guard, "accept", lambda paths, only, anew: asked.append("accept"))
    monkeypatch.setattr(guard, "gate", lambda *_: asked.append("gate") or 0)
    arguments = ["--first", "--out", str(tmp_path / "out")]
    assert guard.main(arguments) == 0
    assert capsys.readouterr().out.startswith(f"::warning title=no baseline::{machine_class()} had none")
    assert summary.main(["--gate", str(tmp_path / "out" / "gate.json")]) == 0
    assert "**Nothing was compared.**" in capsys.readouterr().out
    place = baselines.place(tmp_path, machine_class())
    place.parent.mkdir()
    place.write_text("{}")
    assert guard.main(arguments) == 0
    assert "::warning" not in capsys.readouterr().out
    assert asked == ["accept", "gate"]


def test_a_new_driver_of_a_known_card_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(guard, "BASELINES", tmp_path)
    for known in ("gpu-a-driver-550", "gpu-ab-driver-560"):
        (tmp_path / known).mkdir()
    title, told = guard.nothing_to_compare("gpu-a-driver-570")
    assert title == "new driver"
    assert told.startswith("gpu-a has driver 570, and its baselines are of 550: ")
    assert guard.nothing_to_compare("gpu-b-driver-570")[0] == "no baseline"


@pytest.mark.parametrize("program", [guard, nightly])
def test_a_card_that_is_not_there_ends_in_one_sentence_before_anything_starts(program, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(guard.subprocess, "run", None)
    monkeypatch.chdir(tmp_path)
    assert program.main(["--device", "cuda"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{program.__name__}: torch finds no usable CUDA device here")
    assert not list(tmp_path.iterdir())


SPARE = (
    "datasets",
    "num2words",
    "jinja2",
    "matplotlib",
    "pynvml",
    "sacrebleu",
    "sentencepiece",
    "PIL",
    "nox",
    "yaml",
)


@pytest.mark.processes
def test_a_bare_machine_runs_and_exports_from_the_source_tree(tmp_path: Path):
    """Nothing installed, and nothing importable that is not needed; a missing package is named for who needs it."""
    script = (
        "import importlib.abc, sys\n"
        "class Absent(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {(*SPARE, 'simpy')!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from suite.commands.main import main\n"
        "for arguments in (\n"
        "    'run isgd/alg1 rudra/fig7a --profile smoke --device cpu --budget 60', 'export --out runs.zip'\n"
        "):\n"
        "    sys.argv = ['suite', *arguments.split()]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as stop:\n"
        "        print('exit', stop.code, flush=True)\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SGD_SUITE", "PYTEST"))}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": str(ROOT)},
    )
    assert [line for line in done.stdout.splitlines() if line.startswith("exit")] == ["exit 1", "exit 0"], done.stderr
    assert "needs the Python package simpy, which is not installed here: pip install simpy" in done.stderr
    assert re.search(r"^[1-9]\d* runs? stored", done.stderr, re.MULTILINE), done.stderr
    assert (tmp_path / "runs.zip").stat().st_size > 1000
