"""Engines without a cluster: what would be submitted, what is refused, and what ``status`` tells of a store."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import time
from pathlib import Path

import pytest
import toy

from suite.commands import status as status_module
from suite.commands.options import RunOptions
from suite.commands.planning import Planned, share_of
from suite.commands.run import jobs_for, memory_step
from suite.engines import INDEX, EngineError, Job
from suite.engines.slurm import Slurm
from suite.runner.status_file import SILENT, present
from suite.runs.store import Store
from suite.spec import RunSpec

TABLE = ("run", "toy/table1", "--profile", "smoke", "--device", "cpu")
GIB = 2**30


def planned(*needs: tuple[float, int]) -> list[Planned]:
    """Runs of so many seconds and bytes."""
    return [Planned(RunSpec("toy/draw", {}, i), *need, (), ("toy/table1",)) for i, need in enumerate(needs)]


def test_what_needs_other_memory_is_another_array():
    left = planned((10.0, 300), (20.0, GIB), (30.0, GIB + 1), (60.0, 5 * GIB))
    made = jobs_for(left, ["run"], RunOptions("smoke", Path("/s"), workers=2), 12, {"partition": "x"})
    assert [(job.memory // GIB, job.workers) for job in made] == [(16, 6), (4, 3), (2, 3)]
    assert made[0].commands[0][-2:] == ["--memory", str(8 * GIB)]
    assert {job.cores for job in made} == {2}
    assert made[0].options == {"partition": "x"}
    for count in (1, 2, 3):  # no more than were asked for; the first array computes anything
        made = jobs_for(left, ["run"], RunOptions("smoke", Path("/s")), count, {})
        assert (made[0].memory // GIB, sum(job.workers for job in made)) == (8, count)
    assert [memory_step(b) // GIB for b in (1, GIB, GIB + 1, 9 * GIB)] == [1, 1, 2, 16]


def test_shares_are_disjoint_whole_and_alike():
    plan = planned(*((float(i % 7), 1) for i in range(20)))
    parts = [share_of(plan, (i, 3)) for i in range(3)]
    assert sorted(p.spec.id for part in parts for p in part) == sorted(p.spec.id for p in plan)
    costs = [sum(p.seconds for p in part) for part in parts]
    assert max(costs) - min(costs) <= 6
    assert len(share_of(plan, None)) == 20
    for part in [*parts, share_of(plan, None)]:  # the longest first, that none is left over at the end
        assert [p.seconds for p in part] == sorted((p.seconds for p in part), reverse=True)


def test_a_script_says_what_was_asked_and_quotes_the_rest(tmp_path: Path):
    more = {"mem": "9G", "exclusive": True, "contiguous": False, "nice": 0}
    job = Job("n", [["a b", "$HOME", f"x-{INDEX}.zip", "{env:NODE}/y z"]], Path("/a b"), 3, 2, 3 * GIB, 1, ("7", "8"),
              {"partition": "gpu", "signal": "B:TERM@9", "setup": ["module load x"], **more})  # fmt: skip
    text = Slurm().script(job)
    directives = {line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH")}
    assert directives >= {"--array=0-2", "--cpus-per-task=2", "--mem=9G", "--gpus-per-task=1", "--requeue"}
    assert directives >= {"--dependency=afterany:7:8", "--partition=gpu", "--signal=B:TERM@9"}
    assert directives >= {"--output='/a b/%A_%a.txt'", "--exclusive", "--nice=0"}
    assert "contiguous" not in text
    assert "\nmodule load x\n" in text
    (line,) = (line for line in text.splitlines() if line.startswith("run "))
    told = subprocess.run(
        ["bash", "-c", f'run() {{ printf "%s\\n" "$@"; }}; SLURM_ARRAY_TASK_ID=5; NODE="n 1"; {line}'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.splitlines() == ["a b", "$HOME", "x-5.zip", "n 1/y z"]
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        *((odd, "is no option of sbatch") for odd in ({"evil": "a\nb"}, {"Not an option": 1}, {"a": ["list"]})),
        ({"output": "/a\\b/%A_%a.txt"}, "is no option of sbatch"),
        *(({"signal": odd}, "reaches no worker") for odd in ("USR1@60", 10)),
        *(({"setup": odd}, "must be a list of shell lines") for odd in (3, "module load python", [1])),
    ],
)
def test_options_that_are_none_are_refused(tmp_path: Path, options: dict, why: str):
    with pytest.raises(EngineError, match=why):
        Slurm().script(Job("n", [["x"]], tmp_path, options=options))


def test_a_worker_is_told_of_the_signal_that_its_batch_shell_gets(tmp_path: Path):
    worker = "trap 'echo told; kill $!; exit 3' TERM; sleep 1; kill -USR1 $PPID; sleep 60 & wait"
    script = Slurm().script(Job("n", [["sh", "-c", worker]], tmp_path, options={"signal": "B:USR1@60"}))
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("told\n", 3)


@pytest.fixture
def fake_slurm(tmp_path: Path) -> dict[str, str]:
    """A folder of programs that run a job at once, in the order of its tasks, and an empty queue."""
    folder = tmp_path / "bin"
    folder.mkdir()
    sbatch = (
        "#!/bin/bash\ncat > script; n=$(sed -n 's/.*--array=0-//p' script)\n"
        "export SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=7\n"
        'for i in $(seq 0 "$n"); do SLURM_ARRAY_TASK_ID=$i bash script >&2; done\n'
        "echo '7;cluster'\n"
    )
    for name, text in {"sbatch": sbatch, "squeue": "#!/bin/bash\n", "scontrol": "#!/bin/bash\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_job_is_submitted_computes_and_is_told(sgd, tmp_path: Path, fake_slurm):
    dry = sgd(*TABLE, "--on", "slurm", "--dry-run", **fake_slurm)
    assert (dry.returncode, dry.stdout.startswith("#!/bin/bash")) == (0, True)
    assert not (tmp_path / "runs.store").exists()
    done = sgd(*TABLE, "--on", "slurm", "--jobs", "2", "--wait", **fake_slurm)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "7\n"
    assert "3 of 3 runs stored" in done.stderr
    told = sgd("status", "--json", **fake_slurm)
    found = json.loads(told.stdout)
    assert found["counts"] == {"stored": 3, "running": 0, "interrupted": 0, "failed": 0, "queued": 0}
    assert (found["jobs"], found["seconds_left"]) == ({"slurm": {}}, 0.0)


VARY = ["vary", "toy/table1", "--set", "sleep=0.01", "--device", "cpu"]


def test_an_engine_computes_varied_runs(sgd, tmp_path: Path, fake_slurm):
    dry = sgd(*VARY, "--on", "slurm", "--dry-run", **fake_slurm)
    assert "vary toy/table1 --set sleep=0.01 --name sleep-0.01 --profile smoke" in dry.stdout
    done = sgd(*VARY, "--on", "slurm", "--jobs", "2", "--wait", **fake_slurm)
    assert done.returncode == 0, done.stderr
    ids = Store(tmp_path / "runs.store").ids()
    assert f"{len(ids)} of {len(ids)} runs stored" in done.stderr
    alone = sgd(*VARY, "--store", "alone.store")
    assert Store(tmp_path / "alone.store").ids() == ids
    assert done.stdout == "7\n" + alone.stdout
    local = tmp_path / "local.toml"
    local.write_text('node_local = "$TMPDIR"\nexports = "."\n')
    refused = sgd(*VARY, "--store", "other", "--on", "slurm", "--engine-options", str(local), **fake_slurm)
    assert (refused.returncode, "vary's are none; let nodes share a store" in refused.stderr) == (2, True)


def test_what_goes_only_with_an_engine_is_refused_without(sgd):
    assert sgd(*VARY, "--wait").returncode == sgd(*VARY, "--on", "slurm", "--no-wait").returncode == 2
    for wrong in (
        ["--jobs", "2"],
        ["--dry-run"],
        ["--wait"],
        ["--on", "slurm", "--share", "0/2"],
        ["--on", "slurm", "--seeds", "1"],
        ["--share", "2/2"],
    ):
        done = sgd(*TABLE, *wrong)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), wrong
    assert "slurm: sbatch is not installed here" in sgd(*TABLE, "--on", "slurm", PATH="/nowhere").stderr


def test_who_does_not_wait_leaves_what_another_computes(sgd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TOY_SLEEP", raising=False)
    store = Store(tmp_path / "runs.store", create=True)
    with store.claim(toy.runs("smoke")["draws"][0].id):
        done = sgd(*TABLE, "--no-wait")
    assert done.stderr.splitlines()[-1] == "2 runs stored, 0 already there, 1 left for later, 0 failed"


def test_status_tells_running_from_interrupted_and_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = Store(tmp_path, create=True)
    ids = [RunSpec("toy/draw", {}, i).id for i in range(4)]
    folders = {}
    for run_id in ids[:3]:
        folders[run_id] = store.partial(run_id) / "x"
        folders[run_id].mkdir(parents=True)
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "5")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "2")
    (tmp_path / "wanted").mkdir()
    runs = {run_id: {"artifact": "toy/table1", "seconds": 100.0} for run_id in ids}
    (tmp_path / "wanted" / "smoke-1.json").write_text(json.dumps(runs))
    with present(folders[ids[0]], lambda: 0.25), present(folders[ids[1]], lambda: 0.5):
        old = time.time() - 2 * SILENT
        os.utime(folders[ids[1]] / "progress.json", (old, old))
        (folders[ids[2]] / "failure.txt").write_text("Traceback")
        found = status_module.status(tmp_path)
    assert found["counts"] == {"stored": 0, "running": 1, "interrupted": 1, "failed": 1, "queued": 1}
    states = [found["runs"][run_id]["state"] for run_id in ids[:3]]
    assert states == ["running", "interrupted", "failed"]
    assert found["runs"][ids[0]]["job"] == "5_2"
    text = "\n".join(status_module.lines(found))
    assert f"running      {ids[0]} toy/table1 on " in text
    assert "25% done" in text
    assert "failure.txt" in text


def test_who_has_left_or_died_here_is_told_at_once(tmp_path: Path):
    """Not after a minute of silence, which is for processes of other hosts."""
    store = Store(tmp_path, create=True)
    folder = store.partial("a" * 20) / "x"
    folder.mkdir(parents=True)
    state = lambda: status_module.status(tmp_path)["runs"]["a" * 20]["state"]
    with contextlib.suppress(KeyboardInterrupt), present(folder, lambda: 0.0):
        assert state() == "running"
        raise KeyboardInterrupt
    assert state() == "interrupted"
    note = json.loads((folder / "progress.json").read_text())
    ended = subprocess.Popen(["true"])
    ended.wait()
    for host, told in ((note["host"], "interrupted"), ("elsewhere", "running")):
        (folder / "progress.json").write_text(json.dumps({**note, "left": False, "pid": ended.pid, "host": host}))
        assert state() == told
