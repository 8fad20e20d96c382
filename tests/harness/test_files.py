"""Small files: written whole or not at all, and kept in the user's cache folder for the last few states."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from suite.files import check_file, check_writable, nearest, write_whole


@pytest.mark.parametrize("at", [1, 2])
def test_a_full_disk_is_an_error_and_leaves_the_old_file_or_the_new(tmp_path: Path, monkeypatch, at: int):
    """The file is synced with all that was written, then its folder."""
    (tmp_path / "note").write_text("old")
    real, calls = os.fsync, []

    def full(handle: int) -> None:
        calls.append(os.fstat(handle).st_size)
        if len(calls) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "note", b"new")
    assert calls[0] == len(b"new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"note": "old" if at == 1 else "new"}


def test_a_place_for_a_file_is_tried_and_left_as_it_was(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    check_file(tmp_path / "deep" / "down" / "new")
    check_file(tmp_path / "file")
    check_writable(tmp_path / "deep")
    with pytest.raises(ValueError, match=f"could not write {tmp_path}: it is a folder; name a file"):
        check_file(tmp_path)
    with pytest.raises(ValueError, match=f"could not write {tmp_path}/file: Not a directory"):
        check_file(tmp_path / "file" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert nearest(tmp_path / "deep" / "down") == nearest(tmp_path) == tmp_path
