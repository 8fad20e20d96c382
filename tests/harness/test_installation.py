"""An installation without the extras, and one beside another package of the name ``suite``."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from suite.runs.environment import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# packages whose import name is another
NAMES = {"pillow": "PIL", "scikit-learn": "sklearn", "nvidia-ml-py": "pynvml"}
SPARE = [requirement.split(">")[0] for requirement in PROJECT["optional-dependencies"]["all"]]
ABSENT = [
    NAMES.get(name, name) for name in SPARE if name not in ("jinja2", "networkx", "filelock")
]  # torch's own too


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder with the checkout behind it."""
    arguments = [sys.executable, "-c", f"import sys; sys.path.append({str(ROOT)!r})\n{script}"]
    return subprocess.run(arguments, cwd=folder, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})


def without(script: str) -> str:
    return f"sys.modules.update(dict.fromkeys({ABSENT!r}))\n{script}"


@pytest.mark.processes
def test_the_optimisers_need_what_every_installation_has(tmp_path: Path):
    script = """
import torch
from suite.optim import EASGD, ISGD, SMA, DelayedSGD, Softsync
for kind, settings in ((SMA, {}), (EASGD, {"alpha": 0.1}), (ISGD, {"batches": 2, "zeta": 0.1}),
                       (DelayedSGD, {"delay": 1}), (Softsync, {}), (SMA, {"base": torch.optim.AdamW})):
    module = torch.nn.Linear(3, 2)
    opt = kind(module, lr=0.1, **settings)
    def closure():
        opt.zero_grad()
        loss = module(torch.ones(1, 3)).square().sum()
        loss.backward()
        return loss
    for _ in range(4):
        opt.step(closure)
    opt.average()
    opt.save(kind.__name__)
    opt.resume(kind.__name__)
print("all trained")
"""
    done = run(without(script), tmp_path)
    assert done.stdout == "all trained\n", done.stderr


@pytest.mark.processes
@pytest.mark.parametrize(
    ("file", "script", "message"),
    [
        (
            "",
            "sys.modules['typer'] = None",
            "this needs the Python package typer, which is not installed here: pip inst",
        ),
        ("suite.py", "", "suite.py is another package of the name suite, or a file of yours, and hides that of sgd-"),
        ("suite/__init__.py", "", "is another package of the name suite"),
    ],
)
def test_a_command_that_cannot_run_says_why_in_one_sentence(tmp_path: Path, file: str, script: str, message: str):
    if file:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("__version__ = '1.0.1'\n")
    module = [] if file else ["import runpy; runpy.run_module('suite', run_name='__main__')"]  # python -m suite
    for begin in ("import sgd_scaling_suite; sgd_scaling_suite.main()", *module):
        done = run(f"{script}\nsys.argv = ['sgd-suite', 'list']\n{begin}", tmp_path)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_no_requirement_has_an_upper_limit():
    extras = PROJECT["optional-dependencies"].values()
    everything = [PROJECT["requires-python"], *PROJECT["dependencies"], *(one for extra in extras for one in extra)]
    assert [requirement for requirement in everything if "<" in requirement or "==" in requirement] == []
