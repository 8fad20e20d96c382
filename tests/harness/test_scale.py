"""What a large store costs: the quick commands open what they need, however many runs lie beside it."""

from __future__ import annotations

import builtins
import io
import os
from pathlib import Path

import pytest
import toy

from suite.claims.judge import PROFILES
from suite.commands.check import judge_selection
from suite.commands.list import lines, listing
from suite.papers import measurement
from suite.papers.catalogue import experiment
from suite.runner.execute import RunnerConfig, execute_all
from suite.runs.archive import open_runs

pytestmark = pytest.mark.usefixtures("papers")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of files opened and folders scanned."""
    seen: list[str] = []
    for module, name in ((io, "open"), (builtins, "open"), (os, "scandir")):
        real = getattr(module, name)

        def spy(path, *rest, real=real, **named):
            seen.append(str(path))
            return real(path, *rest, **named)

        monkeypatch.setattr(module, name, spy)
    return seen


def crowded(root: Path, count: int) -> Path:
    """A store with the toy paper's runs and ``count`` others, whose folders need not be read."""
    list(execute_all(toy.runs("reduced")["draws"], experiment, RunnerConfig(root)))
    for i in range(count):
        (root / "runs" / f"{i:020x}").mkdir()
    return root


@pytest.mark.parametrize("command", ["list", "check"])
def test_the_number_of_files_opened_does_not_grow_with_the_store(
    tmp_path: Path, opened: list[str], command: str, monkeypatch: pytest.MonkeyPatch
):
    counts = []
    for others in (10, 500):
        monkeypatch.setattr(measurement, "_MEASURED", {})  # which knows equal runs of another store
        root = crowded(tmp_path / str(others), others)
        opened.clear()
        if command == "list":
            rows = listing([], root)
            assert rows[0]["runs"]["reduced"] == {"needed": 3, "yours": 3, "committed": 0}
        else:
            assert any(v.verdict == "reproduced" for v in judge_selection([], None, open_runs(root)))
        counts.append(len([name for name in opened if str(root) in name]))
    assert counts[0] == counts[1]
    assert 0 < counts[0] < 100


@pytest.mark.parametrize(("columns", "below"), [(80, False), (60, True)])
def test_a_title_stands_below_its_counts_where_the_terminal_is_narrow(columns: int, below: bool) -> None:
    title = "MNIST test accuracy, SGD and ISGD"
    row = {"id": "isgd/fig5a", "title": title, "claims": [], "runs": {name: {"needed": 0} for name in PROFILES}}
    *text, _ = lines([row], columns)
    assert max(map(len, text)) <= columns
    assert (f"  {title}" in text) == below
