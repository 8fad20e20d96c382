"""Compiled code in the cache is loaded only as it was compiled, and from a folder of this user alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from suite.training import machine_code
from suite.training.machine_code import NativeError, Source

CODE = bytes(range(256)) * 64


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[Path, list[str]]]:
    """Asks for a library: where it lies, and whether this compiled it. What is loaded must be what was compiled."""
    told: list[str] = []

    def compile_(command: list[str], **_: object) -> None:
        told.append("compiled")
        Path(command[-1]).write_bytes(CODE)

    def load(path: Path, build: str) -> Path:
        assert path.read_bytes() == CODE, "code of somebody else runs as soon as it is loaded"
        return path

    monkeypatch.setattr(machine_code, "compiler", lambda: ("c++", ""))
    monkeypatch.setattr(machine_code, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("subprocess.run", compile_)
    (tmp_path / "code.cpp").write_text("")

    def ask() -> tuple[Path, list[str]]:
        told.clear()
        return Source(tmp_path / "code.cpp").library({}, load), told

    return ask


def test_code_that_is_not_what_was_compiled_is_compiled_again_unloaded(compiled):
    path, _ = compiled()
    path.write_bytes(CODE[:5000] + bytes([CODE[5000] ^ 8]) + CODE[5001:])
    assert compiled() == (path, ["compiled"])
    assert compiled() == (path, []), "whole again"


def test_code_with_a_damaged_digest_or_none_is_compiled_again(compiled):
    path, _ = compiled()
    path.with_suffix(machine_code.DIGEST).write_bytes(b"\xff")
    assert compiled() == (path, ["compiled"])
    path.with_suffix(machine_code.DIGEST).unlink()
    assert compiled() == (path, ["compiled"])


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a path belong to another user than this process's."""
    if os.geteuid() == 0:
        os.chown(path, 12_345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


def test_code_that_others_can_write_is_compiled_again(compiled):
    path, _ = compiled()
    path.chmod(0o722)
    assert compiled() == (path, ["compiled"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away and keep its folder")
def test_code_of_another_user_is_compiled_again(compiled, monkeypatch: pytest.MonkeyPatch):
    path, _ = compiled()
    give_away(path, monkeypatch)
    assert compiled() == (path, ["compiled"])


def test_the_folder_is_closed_to_others(compiled, tmp_path: Path):
    path, _ = compiled()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.parent.chmod(0o777)
    compiled()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_a_reason(compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "cache" / "native"
    folder.mkdir(parents=True)
    give_away(folder, monkeypatch)
    with pytest.raises(NativeError, match="is another user's, or others can write it: name a cache folder"):
        compiled()
