"""The digest of the source: an edit of what computes moves it, and of what only reads stored runs does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite.runs import environment


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("suite/training/loop.py", "suite/training/native.h", "suite/report/page.py", "suite/report/page.j2"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    monkeypatch.setattr(environment, "CODE_PACKAGES", {"suite": tmp_path})
    environment._code_digest.cache_clear()
    yield tmp_path
    environment._code_digest.cache_clear()


@pytest.mark.parametrize(
    ("name", "moves"),
    [("suite/training/loop.py", True), ("suite/training/native.h", True), ("suite/report/page.py", False)],
)
def test_an_edit_moves_the_digest_where_runs_pass(tree: Path, name: str, moves: bool) -> None:
    before = environment.code_digest()
    (tree / name).write_text("after")
    environment._code_digest.cache_clear()
    assert (environment.code_digest() != before) is moves


def test_a_new_package_and_a_moved_file_count(tree: Path) -> None:
    before = environment.code_digest()
    (tree / "suite/training/loop.py").rename(tree / "suite/training/other.py")
    environment._code_digest.cache_clear()
    moved = environment.code_digest()
    (tree / "own").mkdir()
    (tree / "own/paper.py").write_text("x")
    environment.CODE_PACKAGES["own"] = tree
    assert len({before, moved, environment.code_digest()}) == 3
