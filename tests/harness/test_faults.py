"""Sessions whose operations fail and whose power is cut: the script beside, a part of it or the whole."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import disk
import faults
import pytest
import toy

pytestmark = [pytest.mark.processes, pytest.mark.compiler]


@pytest.mark.parametrize("every", [300, pytest.param(1, marks=pytest.mark.slow)])
def test_failing_operations_and_power_cuts_lose_double_and_fake_nothing(tmp_path: Path, every: int):
    out = tmp_path / "faults.md"
    done = subprocess.run(
        [sys.executable, faults.__file__, "--every", str(every), "--out", str(out)],
        env=toy.environment(PYTHONWARNINGS="default"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tried = out.read_text().splitlines()[-1].split("|")
    assert all(int(count) > 0 for count in tried[2:5])


def test_each_weak_place_has_the_test_that_its_table_names():
    named = re.findall(r"`(tests/\S+?\.py)(?:::(\w+))?`", Path(disk.__file__).with_name("weaknesses.md").read_text())
    assert len(named) > 20
    assert [name for path, name in named if f"def {name}" not in (toy.CHECKOUT / path).read_text()] == []


def test_a_power_cut_takes_what_was_not_synced(tmp_path: Path):
    """A file is written, synced and renamed, and another is only written; the folder is synced before the last."""
    operations = [
        disk.Operation("C", 0, "a", "", b""),
        disk.Operation("W", 0, "a", "", b"whole"),
        disk.Operation("S", 0, "a", "", b""),
        disk.Operation("R", 0, "a", "b", b""),
        disk.Operation("S", 0, "", "", b""),
        disk.Operation("C", 0, "c", "", b""),
        disk.Operation("W", 0, "c", "", b"half"),
    ]
    replay = disk.Replay(tmp_path)
    after = []
    for done in operations:
        replay.apply(done)
        after.append(list(replay.states()))
    lost, torn, zeros, strict = after[-1]
    assert lost == {"b": b"whole", "c": b""}
    assert torn == {"b": b"whole", "c": b"ha"}
    assert zeros == {"b": b"whole", "c": b"\0\0\0\0"}
    assert strict == {"b": b"whole"}
    assert after[1][0] == {"a": b""}
    assert after[3][3] == {}
