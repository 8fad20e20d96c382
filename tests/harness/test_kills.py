"""Every kind of run killed at random, and archives from a stranger: the scripts beside, small or in full."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import hostile
import kills
import pytest
import toy

pytestmark = pytest.mark.processes


def test_a_run_killed_at_random_instants_ends_in_the_same_bits(tmp_path: Path):
    """Six of the kills of the first kind of run."""
    rows = list(kills.trials(kills.KINDS[0], 6, random.Random(1), tmp_path))
    assert sum(row["killed"] for row in rows) >= 6
    assert [row[name] for row in rows for name in ("lost", "doubled", "unlike")] == [0, 0, 0] * len(rows)


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


def test_archives_from_a_stranger_change_nothing_silently():
    """Sixty of the 10,000 that ``hostile.py`` tries, which also looks at the memory."""
    (found,) = hostile.trial(60, 1)
    assert found.total() == 60
