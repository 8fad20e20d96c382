"""Every kind of run killed at random, and archives from a stranger: the scripts beside, small or in full."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import hostile
import kills
import pytest
import toy

pytestmark = pytest.mark.processes


@pytest.mark.slow
def test_300_kills_lose_double_and_change_nothing(tmp_path: Path):
    out = tmp_path / "kills.md"
    done = subprocess.run(
        [sys.executable, kills.__file__, "--kills", "300", "--out", str(out)],
        env=toy.environment(PYTHONWARNINGS="default"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    total = out.read_text().splitlines()[-1].split("|")
    assert int(total[3]) >= 300


@pytest.mark.parametrize("count", [60, pytest.param(10_000, marks=pytest.mark.slow)])
def test_archives_from_a_stranger_change_nothing_silently(tmp_path: Path, count: int):
    out = tmp_path / "hostile.md"
    done = subprocess.run(
        [sys.executable, hostile.__file__, "--count", str(count), "--seed", "1", "--out", str(out)],
        env=toy.environment(PYTHONWARNINGS="default"),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert f"{count:,} archives and forgeries" in out.read_text()
