"""Fixtures of the engine's tests."""

from __future__ import annotations

import pytest

from suite.training import machine_code
from suite.training.gradients import native


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Nothing found before and nothing built before."""
    monkeypatch.delenv("SGD_SUITE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for memory in (machine_code.compiler, native.toolchain, native.library):
        memory.cache_clear()
    yield tmp_path / "cache" / "sgd-scaling-suite" / "native"
    for memory in (machine_code.compiler, native.toolchain, native.library):
        memory.cache_clear()
