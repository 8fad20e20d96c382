"""Fixtures of the engine's tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from suite.training import machine_code
from suite.training.gradients import native


def forget() -> None:
    for memory in (machine_code.compiler, native.library):
        memory.cache_clear()


@pytest.fixture(autouse=True)
def networks(small_networks: None) -> None:
    """All may name the small networks."""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Nothing found before and nothing built before."""
    monkeypatch.delenv("SGD_SUITE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget()
    yield tmp_path / "cache" / "sgd-scaling-suite" / "native"
    forget()


@pytest.fixture
def hastily(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Builds of other flags, compiled in half the time: formulas are the same ones whatever is made of them."""
    monkeypatch.setattr(native, "SOURCE", replace(native.SOURCE, flags=(*native.SOURCE.flags, "-Og")))
    forget()
    yield
    forget()
