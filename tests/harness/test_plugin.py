"""The pytest plug-in: one claim, one item, judged as ``check`` judges it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import toy

from suite.papers.catalogue import experiment
from suite.runner.execute import RunnerConfig, execute_all

PUBLISHED = toy.HERE / "published"


@pytest.fixture
def filled(papers, tmp_path: Path) -> Path:
    """A store with the toy paper's reduced runs."""
    list(execute_all(toy.runs("reduced")["draws"], experiment, RunnerConfig(tmp_path / "store")))
    return tmp_path / "store"


def claims(*arguments: object) -> subprocess.CompletedProcess[str]:
    """pytest in another process, with the toy paper installed by a plug-in."""
    plugin = [
        "-p",
        "toy_installed",
        "-p",
        "suite.commands.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
    ]
    command = [sys.executable, "-m", "pytest", *plugin, "--rootdir", str(toy.HERE), *map(str, arguments), "-rA"]
    return subprocess.run(command, capture_output=True, text=True, env=toy.environment(), cwd=toy.HERE, timeout=600)


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    found = re.findall(r"^(PASSED|FAILED) \S+::(\S+)", done.stdout, re.MULTILINE)
    return {name: outcome for outcome, name in found}


@pytest.mark.processes
def test_every_claim_is_one_item(filled: Path):
    done = claims(PUBLISHED, "--store", filled, "--junitxml", filled.with_name("claims.xml"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert outcomes(done) == {
        "table1/seven": "PASSED",
        "table1/eight": "FAILED",
        "table1/found": "PASSED",
        "table1/mean": "PASSED",
        "table1/share": "PASSED",
    }
    assert "a cluster of 64 machines" in done.stdout  # the reason of the skip
    assert "1 failed, 4 passed, 1 skipped" in done.stdout
    assert "printed 8, measured 7; rule within, because arithmetic" in done.stdout
    assert "claims by what they rest on" in done.stdout
    assert re.search(r"^  exact: +1 holds, 2 does not hold$", done.stdout, re.MULTILINE)
    cases = {case.get("name"): case for case in ElementTree.parse(filled.with_name("claims.xml")).iter("testcase")}
    properties = lambda name: {each.get("name"): each.get("value") for each in cases[name].iter("property")}
    assert properties("table1/eight") == {"verdict": "not reproduced", "rests on": "exact"}
    assert properties("table1/mean")["verdict"] == "reproduced"


@pytest.mark.processes
def test_a_mistake_is_a_usage_error():
    done = claims(PUBLISHED, "--store", "absent")
    told = "ERROR: no store at absent: run something first, or name another with --store\n"
    assert (done.returncode, told in done.stderr, done.stdout) == (4, True, "")
