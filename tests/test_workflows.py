"""What runs on machines of our own, at which versions, and what a job's summary tells."""

from __future__ import annotations

import json
import os
import re
import runpy
import stat
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from ci import issue, summary
from suite.runs.environment import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_nox_only(path: Path):
    text = path.read_text()
    commands = re.findall(r"^\s*(?:- )?run: (.*)$", text, re.MULTILINE)
    assert commands
    assert "|" not in commands, "it has a script of its own"
    pinned = r'-c ci/constraints.txt "nox\[uv\]"|--require-hashes -r ci/nox.lock'
    session = rf'(pip install ({pinned}) && )?(sudo -E env "PATH=\$PATH" )?nox -s [^;&|]*'
    system = r"sudo apt-get update && sudo apt-get install -y --no-install-recommends [a-z -]+"
    folders = r"'\[\[ .* \]\] && for name in \$FOLDERS; do echo .*; done >> \"\$GITHUB_ENV\"'"  # of a throw-away job
    assert all(re.fullmatch(f"{session}|{system}|{folders}", line) for line in commands)
    used = re.findall(r"uses: (\S+)", text)
    assert any("upload-artifact" in use for use in used)
    assert all(re.search(r"@[0-9a-f]{40}$", use) for use in used)


def jobs(path: Path) -> dict[str, str]:
    """The text of each job of a workflow, by name."""
    _, _, text = path.read_text().partition("\njobs:\n")
    _, *parts = re.split(r"^  (\w+):.*\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_stranger_runs_code_on_our_machines(path: Path):
    """No pull request starts a job there, and a commit that a maintainer names reaches nothing that others use."""
    begun_by, _, _ = path.read_text().partition("\npermissions:")
    ours = {name: text for name, text in jobs(path).items() if "self-hosted" in text}
    assert not (ours and re.search(r"^  pull_request", begun_by, re.MULTILINE))
    for text in ours.values():
        if "ref: " in text:
            assert "environment: reviewed-commit" in text
            assert "runs-on: [self-hosted, linux, reviewed]" in text
            assert "github.ref == 'refs/heads/main'" in text, "or the workflow is the branch's own"
            assert "SGD_SUITE_HOME" not in text
        else:
            assert "reviewed" not in text


INSTALLING = ("README.md", "CONTRIBUTING.md", ".ci/run", "docs/*.md", ".github/workflows/*.yml")


def test_nox_and_uv_are_installed_at_the_versions_of_the_constraints_everywhere():
    texts = {path: path.read_text() for pattern in INSTALLING for path in ROOT.glob(pattern)}
    lines = [(path.name, line) for path, text in texts.items() for line in text.splitlines() if "nox[uv]" in line]
    assert {"README.md", "run", "tests.yml"} <= {name for name, _ in lines}
    assert [line for line in lines if 'pip install -c ci/constraints.txt "nox[uv]"' not in line[1]] == []
    assert {"nox", "uv"} <= pins("constraints.txt").keys()


def pins(name: str) -> dict[str, str]:
    """Versions by package in a file of ``ci/``."""
    found = re.findall(r"^([\w.-]+)==([^ ;\n]+)", (ROOT / "ci" / name).read_text(), re.MULTILINE)
    return {package.lower().replace("_", "-"): version for package, version in found}


def test_our_machines_install_hashed_files_of_the_same_versions():
    """A package index that serves another file is refused before anything of it runs."""
    ours = [text for path in WORKFLOWS for text in jobs(path).values() if "self-hosted" in text]
    assert [text for text in ours if "pip install --require-hashes -r ci/nox.lock" not in text] == []
    assert [text for text in ours if "pip install -c" in text] == []
    for name in ("nox.lock", "runners.lock"):
        text, versions = (ROOT / "ci" / name).read_text(), pins("constraints.txt")
        assert not {package: each for package, each in pins(name).items() if versions.get(package, each) != each}
        entries = re.split(r"\n(?=\w)", text.strip())
        assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert {"torch", "numpy", "pytest", "setuptools"} <= pins("runners.lock").keys()


def test_nothing_in_a_night_s_files_speaks_to_github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    """Neither as a command of the log, nor as a mention, a link or a picture of the issue."""
    odd = {"id": "rudra/x", "verdict": "not reproduced", "why": "@all ![p](http://x) `a`\r\n::x::%0A", "red": True}
    assert "\n" not in summary.annotation(odd["id"], odd["why"])
    assert "%0D%0A::x::%250A" in summary.annotation(odd["id"], odd["why"])
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "claims.json").write_text(json.dumps([odd, {**odd, "red": False}, 7]))
    (tmp_path / "gate.json").write_text("[")
    monkeypatch.setattr(sys, "argv", ["issue", str(tmp_path), "--dry"])
    assert issue.main() == 0
    quoted = [line for line in capsys.readouterr().out.splitlines() if "rudra/x" in line]
    assert quoted == ["- `rudra/x: not reproduced: @all ![p](http://x) ?a???::x::%0A`"]


def test_nox_executes_nothing_in_a_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The name of a folder for all nights may be taken first by any user of the machine."""
    fake = ModuleType("nox")
    session = lambda body=None, **_: body or (lambda body: body)
    fake.__dict__.update(options=SimpleNamespace(), session=session, Session=object)
    fake.__dict__.update(parametrize=lambda *_: lambda body: body, param=lambda *_, **__: None)
    monkeypatch.setitem(sys.modules, "nox", fake)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("NOX_ENVDIR", str(tmp_path / "home" / "nox"))
    runpy.run_path(str(ROOT / "noxfile.py"))
    assert stat.S_IMODE((tmp_path / "home" / "nox").stat().st_mode) == 0o700
    if os.geteuid() == 0:
        os.chown(tmp_path / "home", 12_345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(SystemExit, match="is another user's, or others can write it: name another with NOX_ENVDIR"):
        runpy.run_path(str(ROOT / "noxfile.py"))
