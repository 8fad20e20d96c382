"""The command line: exit codes, one sentence per mistake, one JSON document, nothing half-written."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import toy

from suite.commands import main
from suite.commands.output import explain

TABLE = ("run", "toy/table1", "--profile", "smoke")


@pytest.fixture
def blocked(tmp_path: Path) -> Path:
    """A file where a folder is wanted: unwritable for every user."""
    path = tmp_path / "blocked"
    path.write_text("in the way")
    return path


MISTAKES = {
    "unknown paper": (["list", "rubra"], "nothing is called 'rubra'; name a paper (toy)"),
    "wrong profile": (["run", "--profile", "huge"], "'huge' is not one of 'smoke', 'reduced', 'paper'"),
    "no profile": (["run"], "Missing option '--profile'"),
    "unknown command": (["rnu"], "No such command 'rnu'"),
    "endless budget": ([*TABLE, "--budget", "inf"], "inf is no number of seconds"),
    "nameless store": (["check", "--store", ""], "the name is empty"),
    "unwritable store": ([*TABLE, "--store", "blocked/s"], "cannot write a store at blocked/s: Not a directory"),
    "file for a store": ([*TABLE, "--store", "blocked"], "cannot write a store at blocked: "),
    "no such store": (["check", "--store", "absent"], "no store at absent"),
    "foreign file for a store": (["check", "--store", "blocked"], "blocked is not an export of runs"),
    "absent export": (["merge", "absent.zip"], "absent.zip is not an export of runs: No such file"),
    "nothing to export": (["export", "--store", "blocked"], "blocked is a file, no folder of runs"),
    "status of a file": (["status", "--store", "blocked"], "`sgd-suite merge` takes exports in"),
    "folder for junit": (["check", "toy/fig2", "--junit", "."], "could not write .: it is a folder; name a file"),
    "unwritable paper": (["new-paper", "foo", "--into", "blocked/p"], "could not write blocked/p: Not a directory"),
    "untestable store": (["doctor", "--store", "blocked/s"], "could not write blocked/s: Not a directory"),
    "unknown data set": (["data", "verify", "mnits"], "sgd-suite: no data set is called 'mnits'"),
}


def test_a_locale_without_signs_loses_no_number(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "argv", ["sgd-suite", "--version"])
    with pytest.raises(SystemExit):
        main.main()
    assert out.errors == "backslashreplace"


@pytest.mark.parametrize(("arguments", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_ends_in_one_sentence_and_exit_2(sgd, tmp_path: Path, blocked: Path, arguments, sentence: str):
    if arguments[0] in ("list", "check") and "--store" not in arguments:
        (tmp_path / "runs.store" / "runs").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    done = sgd(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert sentence in done.stderr
    assert done.stderr.startswith("sgd-suite: ")
    assert done.stderr.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_run_check_export_merge_and_compare(sgd, tmp_path: Path):
    first = sgd(*TABLE)
    assert (first.returncode, first.stdout) == (0, "")
    assert first.stderr.splitlines()[-1] == "3 runs stored, 0 already there, 0 left for later, 0 failed"
    again = sgd(*TABLE)
    assert again.stderr.splitlines() == ["0 runs stored, 3 already there, 0 left for later, 0 failed"]

    red = sgd("check")
    assert red.returncode == 1
    assert [line.split()[0] for line in red.stdout.splitlines() if "RED" in line] == ["eight"]
    assert red.stdout.splitlines()[-1] == "evidence: 3 yours, 0 committed"
    calm = sgd("check", "toy/fig2", "-v")
    assert calm.returncode == 0
    assert "a cluster of 64 machines" in calm.stdout

    assert sgd("export", "--out", "some/runs.zip").returncode == 0
    taken = sgd("merge", "some/runs.zip", "--store", "other")
    assert taken.stdout == "3 runs added, 0 already there\n"
    equal = sgd("compare", "runs.store", "other", "--json")
    assert equal.returncode == 0
    assert json.loads(equal.stdout)["compared"] == 3
    assert json.loads(equal.stdout)["changed"] == []
    assert sgd("check", "--store", "some/runs.zip").stdout == red.stdout
    assert sgd("check", "--only-mine").stdout == red.stdout

    outcome = next((tmp_path / "other" / "runs").glob("*/outcome.json"))
    outcome.write_text(outcome.read_text().replace("finished", "diverged"))
    damaged = sgd("check", "toy/table1", "--store", "other")
    assert damaged.returncode == 1
    assert f"run {outcome.parent.name}: outcome.json does not match its checksum" in " ".join(damaged.stdout.split())
    others = ["explain", "toy/table1/share"], ["export"], ["compare", "runs.store", "other"]
    for command in others:
        done = sgd(*command, *(["--store", "other"] if command[0] != "compare" else []))
        assert (done.returncode, done.stderr.count("\n") < 2) == (1, True), command
        assert "does not match its checksum" in done.stdout + done.stderr


def test_a_failed_run_is_told_and_ends_with_1(sgd):
    done = sgd(*TABLE, TOY_DOES="refuse")
    assert done.returncode == 1
    assert done.stderr.count("size=7 must be even; use 6 or 8") == 3
    assert done.stderr.splitlines()[-1] == "0 runs stored, 0 already there, 0 left for later, 3 failed"


def test_explaining_a_red_verdict_is_red(sgd):
    assert sgd(*TABLE).returncode == 0
    codes = [sgd("explain", f"toy/table1/{claim}").returncode for claim in ("eight", "seven")]
    assert codes == [1, 0]


def test_committed_runs_of_a_larger_profile_come_first_unless_only_mine_count(sgd, tmp_path: Path):
    (tmp_path / "evidence").mkdir()
    assert sgd("run", "toy/table1", "--profile", "reduced", "--store", "other").returncode == 0
    assert sgd("export", "--store", "other", "--out", "evidence/toy.zip").returncode == 0
    assert sgd(*TABLE).returncode == 0
    explain = ("explain", "toy/table1/share")
    told = [sgd(*explain, *mine, TOY_EVIDENCE="evidence").stdout for mine in ((), ("--only-mine",))]
    assert [text.rpartition("--profile ")[2].split()[0] for text in told] == ["reduced", "smoke"]


def test_what_has_no_runs_at_a_profile_says_where_it_has_some(sgd):
    done = sgd("run", "toy/fig2", "--profile", "smoke")
    told = "nothing to run: toy/fig2 has no runs at smoke, it has some at paper\n"
    assert (done.returncode, done.stderr) == (0, told)


def test_of_several_artifacts_those_without_their_data_are_left_out(sgd):
    """`toy/fig2` needs ImageNet at paper; alone it is a mistake, beside others a line."""
    alone = sgd("run", "toy/fig2", "--profile", "paper", "--budget", "60")
    assert (alone.returncode, alone.stderr.count("\n")) == (2, 1)
    first = sgd("run", "toy/table1", "toy/fig2", "--profile", "paper")
    assert first.returncode == 0, first.stderr
    assert first.stderr.splitlines()[0].startswith("1 run left out, missing: imagenet is not below ")
    told = "3 runs stored, 0 already there, 0 left for later, 0 failed, 1 without their data"
    assert first.stderr.splitlines()[-1] == told
    again = sgd("run", "toy/table1", "toy/fig2", "--profile", "paper", "--budget", "60")
    assert (again.returncode, "0 runs stored, 3 already there" in again.stderr) == (0, True)
    parts = [sgd("run", "toy/table1", "toy/fig2", "--profile", "paper", "--share", f"{i}/4") for i in range(4)]
    assert [part.returncode for part in parts] == [0] * 4  # one of which has nothing else
    assert json.loads(sgd("status", "--json").stdout)["counts"]["queued"] == 0


def test_a_plan_may_name_a_store_that_is_not_there_yet(sgd, tmp_path: Path):
    planned = sgd("plan", "--profile", "smoke", "--store", "new")
    assert planned.returncode == 0
    assert "4 runs at smoke: 0 yours, 0 committed; what is not yours takes about" in planned.stdout
    assert not (tmp_path / "new").exists()


def test_the_first_seeds_of_every_group_come_alone_and_the_others_later(sgd):
    planned = json.loads(sgd("plan", "toy/table1", "--profile", "smoke", "--seeds", "2", "--json").stdout)
    assert planned["runs"] == 2
    first = sgd("run", "toy/table1", "--profile", "smoke", "--seeds", "2")
    assert "2 runs stored, 0 already there" in first.stderr
    assert "1 run stored, 2 already there" in sgd("run", "toy/table1", "--profile", "smoke").stderr
    assert sgd("run", "toy/table1", "--profile", "smoke", "--seeds", "0").returncode == 2


def test_the_shell_completes_papers_artifacts_and_data_sets():
    from suite.commands.options import complete_dataset, complete_selector

    assert complete_selector("isg") == ["isgd", *(name for name in complete_selector("isgd/"))]
    assert "isgd/fig5a" in complete_selector("isgd/fig5")
    assert complete_selector("nosuch") == []
    assert complete_dataset("cifar") == ["cifar10", "cifar100"]


def test_json_is_one_document_and_nothing_else(sgd, tmp_path: Path):
    assert sgd(*TABLE).returncode == 0
    listed = json.loads(sgd("list", "--json").stdout)
    assert [row["id"] for row in listed] == ["toy/table1", "toy/fig1", "toy/fig2"]
    assert listed[0]["runs"]["smoke"] == {"needed": 3, "yours": 3, "committed": 0}
    assert [claim["id"] for claim in listed[2]["claims"]] == ["toy/fig2/imagined"]
    planned = json.loads(sgd("plan", "--profile", "smoke", "--json").stdout)
    assert (planned["runs"], planned["yours"], len(planned["plan"])) == (4, 3, 4)
    lacking = json.loads(sgd("plan", "toy/fig2", "--profile", "paper", "--json").stdout)
    assert list(lacking["missing_data"]) == ["imagenet"]
    valued = json.loads(sgd("plan", "--profile", "reduced", "--budget", "60", "--json").stdout)
    assert [(each["artifact"], each["claims"]) for each in valued["stages"]] == [("toy/table1", ["toy/table1/mean"])]
    checked = sgd("check", "--json", "--junit", "claims.xml")
    assert "written to claims.xml" in checked.stderr
    assert checked.returncode == 1
    verdicts = {row["id"]: row for row in json.loads(checked.stdout)}
    assert verdicts["toy/table1/eight"]["red"] is True
    assert verdicts["toy/table1/found"]["red"] is False
    assert verdicts["toy/table1/mean"]["ours"] is None
    assert verdicts["toy/table1/mean"]["proxy"]["n"] == 3

    suite = ElementTree.parse(tmp_path / "claims.xml").getroot()
    assert [suite.get(count) for count in ("tests", "failures", "skipped")] == ["6", "1", "2"]
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    skipped = [case.get("name") for case in suite if case.find("skipped") is not None]
    assert (failed, skipped) == (["toy/table1/eight"], ["toy/table1/mean", "toy/fig2/imagined"])


def test_what_a_budget_never_began_is_one_line(sgd):
    told = sgd(*TABLE, "--budget", "1", TOY_SLEEP="60", TOY_RUNS="20").stderr.splitlines()
    begun = sum(" late;" in line for line in told)
    assert begun <= 1
    assert told[-2:] == [
        f"{20 - begun} runs not begun",
        "0 runs stored, 0 already there, 20 left for later, 0 failed",
    ]


def test_no_arguments_show_the_help(sgd):
    done = sgd()
    assert done.returncode == 2
    assert "Usage:" in done.stdout + done.stderr


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path):
    """As `list | head -1` does."""
    command = [sys.executable, toy.__file__, "list"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=toy.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    told = process.stderr.read().decode()
    process.stderr.close()
    assert (process.wait(timeout=600), told) == (141, "")


@pytest.mark.parametrize("command", [["figures"], ["report"], ["export"], ["check", "--junit"], ["reproduce"]])
def test_where_results_go_is_tried_before_anything_is_computed(sgd, tmp_path: Path, blocked: Path, command):
    (tmp_path / "runs.store" / "runs").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    place = [] if "--junit" in command else ["--out"]
    done = sgd(*command, *place, "blocked/below/it")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "could not write blocked" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_control_characters_of_a_path_are_not_obeyed(sgd):
    done = sgd("check", "--store", "a\x1b[31mb")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert "no store at a[31mb" in done.stderr


def test_too_little_memory_for_a_library_is_one_sentence(capsys: pytest.CaptureFixture[str]):
    """As under ``ulimit -v``; any other failed import is a fault of ours, with its traceback."""
    assert explain(ImportError("libtorch_cpu.so: failed to map segment from shared object")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "sgd-suite: libtorch_cpu.so: failed to map segment from shared object: there is too little"
    )
    assert explain(ImportError("cannot import name 'x'")) == 2
    assert "ImportError: cannot import name 'x'" in capsys.readouterr().err


def test_ctrl_c_and_a_closed_stdout_are_no_faults_of_ours():
    """A Ctrl-C while modules are imported, one while typer reads the arguments, and a shell's ``>&-``."""
    command = """
import sys
import sgd_scaling_suite
from suite.commands import main
def stop(*arguments, **options):
    raise KeyboardInterrupt
if sys.argv[1] == "import":
    sgd_scaling_suite.hindrance = stop
elif sys.argv[1] == "arguments":
    main.application = lambda words: lambda **options: 130
else:
    sys.stdout = None
    main.application = lambda words: lambda **options: None
sgd_scaling_suite.main()
"""
    for when, code in (("import", 130), ("arguments", 130), ("closed", 0)):
        done = subprocess.run([sys.executable, "-c", command, when], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith("interrupted by SIGINT" if code else "")
        assert done.stderr.count("\n") == bool(code)
