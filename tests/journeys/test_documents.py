"""Every command line of README and the documentation, run in the pages' order in one folder."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import walk

from suite.papers.catalogue import committed, paper
from suite.runs.archive import Layered
from suite.runs.environment import ROOT
from suite.runs.store import Store

pytestmark = pytest.mark.journeys

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = r"sgd-suite|python|nox|pytest|pip|torchrun"

# What stands for the placeholders of the pages.
PLACEHOLDERS = {
    "DIR": "data",
    "SELECTOR": "isgd/fig5a",
    "CLAIM": "isgd/fig5a/slightly-faster",
    "STORE": "runs.store",
    "/shared/store": "shared.store",
}

# Command lines that are not run here, and why.
LEFT_OUT = {
    "pip *": "changes the environment that the tests run in",
    "sgd-suite --install-completion": "writes into the files of the user's shell",
    "nox*": "makes an environment of its own; that its session exists is tested below",
    "pytest *": "judges each claim, as check does in test_artifacts",
    "sgd-suite check -v": "the same",
    "python -m [!s]*": "minutes of timing, a card, or a site that is built; its --help is called below",
    "python examples/*": "trainings; tests/optim/test_examples runs them",
    "torchrun*": "several processes; tests/optim runs them",
    "sgd-suite data fetch *": "needs the network",
    "sgd-suite rep*": "the main job, minutes of training (nox -s suite), and the report, which test_artifacts writes",
    "sgd-suite run together/*": "an hour of training; tests/test_together runs it at its smallest size",
    "sgd-suite [!nv]* mine*": "needs the new experiment installed: tests/harness/test_own.py walks it",
    "sgd-suite vary mine/*": "the same",
    "sgd-suite vary * --name zetas": "the line above it three times over; tests/harness/test_vary.py draws several",
    "sgd-suite [!n]* lookahead*": "needs the new paper installed: nox -s sixth walks that page",
    "sgd-suite * --on slurm*": "needs Slurm: nox -s cluster",
}


def lines_of(page: Path) -> list[str]:
    """The command lines of a page: indented or fenced ones, and those in its sentences."""
    text = page.read_text(encoding="utf-8")
    blocks = rf"^[ ]*((?:{PROGRAMS}) [^\n]*)$"
    spans = rf"(?<!`)`((?:{PROGRAMS})\b[^`]*)`"
    found = [a or b for a, b in re.findall(f"{blocks}|{spans}", text, re.MULTILINE)]
    whole = [" ".join(shlex.split(line, comments=True) and line.partition(" #")[0].split()) for line in found]
    return [part.strip() for line in whole for part in line.split("&&")]


COMMANDS = list(dict.fromkeys(line for page in PAGES for line in lines_of(page)))
MODULES = sorted({match for line in COMMANDS for match in re.findall(r"^python -m ([\w.]+)", line)})


def left_out(line: str) -> bool:
    return any(fnmatchcase(line, pattern) for pattern in LEFT_OUT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A checkout's user after the trainings of Fig. 5(a), which ``run`` then finds stored."""
    made = tmp_path_factory.mktemp("documents")
    store, source = Store(made / "runs.store", create=True), Layered(committed())
    fig5a = paper("isgd").artifact("isgd/fig5a")
    for specs in [group for profile in ("smoke", "reduced") for group in fig5a.runs(profile).values()]:
        for spec in specs:
            store.commit(spec.id, source.read(spec.id).files)
    for exported in ("fig5a.zip", "gpu-results/runs.zip"):
        walk.call("export", fig5a.id, "--store", str(store.root), "--out", str(made / exported)).fine()
    Store(made / "shared.store", create=True)
    (made / "data").mkdir()
    return made


@pytest.mark.parametrize("line", [line for line in COMMANDS if not left_out(line)])
def test_a_command_line_of_the_pages_does_what_it_says(folder, monkeypatch, line):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SGD_SUITE_DATA", str(folder / "data"))
    monkeypatch.setenv("SGD_SUITE_CACHE", str(folder / "cache"))
    program, *words = [PLACEHOLDERS.get(word, word) for word in shlex.split(line)]
    if program == "python":  # -m suite
        words = words[2:]
    alone = len(words) <= 1 or (words[0] == "data" and len(words) == 2)  # a command's name in a sentence
    walk.call(*words, *(["--help"] if alone else [])).fine()


def test_the_measurements_of_the_page_on_batch_sizes_make_a_choice():
    text = (ROOT / "docs" / "choose-a-batch-size.md").read_text(encoding="utf-8")
    exec(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[1], {})


def test_every_reason_to_leave_a_line_out_is_needed():
    unused = [pattern for pattern in LEFT_OUT if not any(fnmatchcase(line, pattern) for line in COMMANDS)]
    assert unused == []


@pytest.mark.parametrize("module", MODULES)
def test_every_module_that_a_page_calls_has_help(module, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    monkeypatch.delitem(sys.modules, module, raising=False)  # as in a process of its own
    with pytest.raises(SystemExit) as stop:
        runpy.run_module(module, run_name="__main__", alter_sys=False)
    assert not stop.value.code
    assert "usage" in capsys.readouterr().out.lower()


def test_every_session_that_a_page_names_is_one_of_nox():
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    sessions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list}
    named = {match for line in COMMANDS for match in re.findall(r"^nox -s \"?(\w+)", line)}
    assert named
    assert named <= sessions
