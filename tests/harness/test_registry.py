"""The registered papers: in what order they stand, where they come from, and what executes their runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from suite.papers import catalogue
from suite.papers.catalogue import registered

ELSEWHERE = "paper_figures.isgd:PAPER"  # a package that can be found


def entries(*names, value=ELSEWHERE):
    return lambda group: [SimpleNamespace(name=name, value=value) for name in names if group == catalogue.GROUP]


@pytest.mark.parametrize("place", ["nowhere_to_be_found:PAPER", "only_a_folder.inside:PAPER"])
def test_a_registered_paper_whose_package_is_gone_is_named(monkeypatch, tmp_path, place):
    (tmp_path / "only_a_folder").mkdir()  # what an uninstalled package may leave behind
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(catalogue.metadata, "entry_points", entries("ant", value=place))
    with pytest.raises(ModuleNotFoundError, match=f"the paper at {place} is registered, but its package cannot be"):
        registered()


def test_a_deleted_package_is_one_sentence_in_every_command(tmp_path: Path):
    """As after ``rm -r mine``, where ``pip uninstall`` was forgotten."""
    about = tmp_path / "mine-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[sgd_suite.papers]\nmine = mine_experiment:PAPER\n")
    there = os.pathsep.join([str(tmp_path), str(Path(catalogue.__file__).parents[2])])
    command = [sys.executable, "-m", "suite", "list"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": there}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("sgd-suite: the paper at mine_experiment:PAPER is registered, but its package")
    assert done.stderr.count("\n") == 1
