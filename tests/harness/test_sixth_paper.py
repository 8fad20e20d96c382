"""A paper in a package of its own: made, found by its entry point, taken through every command, and nothing here
changes."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from suite.commands.new_paper import files, new_package
from suite.papers import catalogue
from suite.papers.artifact import PaperError

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
NAME = "lookahead"
OURS = ("suite", "reference_impls", "paper_figures", "docs", "examples", "README.md", "pyproject.toml")

# Every line of stdin is a command line; "alone" leaves the new paper as the only one, since a report holds them all.
DRIVER = f"""
import shlex, sys
from suite.commands.main import main
from suite.papers.catalogue import PAPERS
for line in sys.stdin.read().splitlines():
    if line == "alone":
        for name in set(PAPERS) - {{{NAME!r}}}:
            del PAPERS[name]
        continue
    if line.startswith("pytest"):
        import pytest
        print(f"exit {{pytest.main(shlex.split(line)[1:]):d}} of {{line}}", flush=True)
        continue
    sys.argv = ["sgd-suite", *shlex.split(line)]
    try:
        main()
    except SystemExit as stop:
        print(f"exit {{stop.code}} of {{line}}", flush=True)
"""
COMMANDS = f"""
pytest -q -p no:cacheprovider project project/{NAME}_paper/published/{NAME}.toml
list {NAME}
plan {NAME} --profile smoke
""".split("\n")[1:-1]
WHERE_THE_PROJECT_IS = f"""
explain {NAME}/fig1/ratio
export {NAME} --out project/{NAME}_paper/evidence/{NAME}.zip
refresh {NAME}
alone
reproduce {NAME} --profile smoke --accept
reproduce {NAME} --profile smoke
refresh {NAME}
refresh {NAME} --check
register {NAME} --because "nothing changed"
""".split("\n")[1:-1]


def contents() -> dict[str, str]:
    """Digests of this project's files."""
    roots = [ROOT / name for name in OURS]
    paths = [path for root in roots for path in (root.rglob("*") if root.is_dir() else [root])]
    kept = [path for path in paths if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


def child(folder: Path, site: Path, *command: str, lines: list[str] | None = None) -> str:
    """What a Python process says that finds ``site`` and this checkout; fails the test where it fails."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SGD_SUITE", "PYTEST"))}
    path = os.pathsep.join(map(str, (site, ROOT)))
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=clean | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        input="\n".join(lines or []),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def put_on_the_path(project: Path) -> None:
    """What an installation in place leaves behind: metadata with the entry point, beside the package."""
    about = project / f"{NAME}_paper-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}-paper\nVersion: 0.1\n")
    (about / "entry_points.txt").write_text(f"[{catalogue.GROUP}]\n{NAME} = {NAME}_paper:PAPER\n")


def test_a_sixth_paper_passes_its_tests_goes_through_every_command_and_nothing_here_changes(tmp_path: Path) -> None:
    before, project = contents(), tmp_path / "project"
    told = new_package(NAME, project)[-1].split(" && ")  # register, run, check, figures
    lines = [*COMMANDS, *[line.removeprefix("sgd-suite ") for line in told], *WHERE_THE_PROJECT_IS]
    put_on_the_path(project)
    said = child(tmp_path, project, "-c", DRIVER, lines=lines)
    failed = [line for line in said.splitlines() if line.startswith("exit ") and not line.startswith("exit 0 of")]
    assert failed == [], said
    assert said.count("exit 0 of") == len(lines) - 1
    for told in (
        " passed",
        "register.jsonl: 2 rules, 1 grid",
        "1 artifact, 2 claims",
        "10 runs at smoke",
        "0.443",
        "begun 20",
        "all 2 verdicts at smoke equal the committed ones",
        "all generated files are up to date",
        "the register is up to date",
    ):
        assert told in said
    assert list((tmp_path / "figures").glob("*.svg"))
    report = (tmp_path / "report" / NAME / "fig1.html").read_text()
    assert "Lookahead's steady variance is lower than SGD's" in report.replace("&#39;", "'")
    package = project / f"{NAME}_paper"
    assert json.loads((package / "index.json").read_text())["papers"] == [NAME]
    assert "Properties and statements, counted apart: holds 2" in (project / "README.md").read_text()
    assert json.loads((package / "evidence" / "verdicts-smoke.json").read_text()) == {
        f"{NAME}/fig1/{claim}": "reproduced" for claim in ("ratio", "lower")
    }
    hours = package / "hours.csv"  # there where a run took a tenth of a second of the processor
    assert not hours.exists() or "isgd" not in hours.read_text(), "other papers' runs are counted"
    assert contents() == before


def test_what_a_paper_of_ones_own_imports_is_listed_as_what_it_may_import() -> None:
    """What ``new-paper`` writes, and docs/adding-a-paper.md shows, stands in docs/api by module and name."""
    shown = (ROOT / "docs" / "adding-a-paper.md").read_text(encoding="utf-8")
    written = [text for path, text in files(NAME).items() if path.endswith(".py")]
    wanted = {
        (str(node.module), alias.name)
        for text in [*written, *re.findall(r"^from suite.*", shown, re.MULTILINE)]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("suite", "reference_impls"))
        for alias in node.names
    }
    listed = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md"))
    whole = re.findall(r"^::: (\S+)", listed, re.MULTILINE)
    rows = {
        row[1]: re.findall(r"`(\w+)`", row[2]) for row in re.finditer(r"^\| `(\S+)` \| (.*)", listed, re.MULTILINE)
    }
    known = [*whole, *rows]
    lacking = {
        f"{module}.{name}"
        for module, name in wanted
        if module not in whole and name not in rows.get(module, ()) and f"{module}.{name}" not in known
    }
    assert len(wanted) > 20
    assert lacking == set()
    named = {(module, name) for module, names in rows.items() for name in names if name != "pytest_plugins"}
    assert [pair for pair in named if not hasattr(importlib.import_module(pair[0]), pair[1])] == []


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(PaperError, match="is not an empty folder; name another with --into"):
        new_package(NAME, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(PaperError, match="is not an empty folder; name another with --into"):
        new_package(NAME, tmp_path / "mine")
