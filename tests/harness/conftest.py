"""Fixtures of the harness tests: the toy paper in this process, its command line in another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import toy

from suite.papers import evidence, register, registry
from suite.papers.published import published as claims_of

Sgd = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def papers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy paper instead of the five, until the test ends."""
    before = dict(registry.PAPERS)
    monkeypatch.setattr(evidence, "folders", evidence.folders)
    monkeypatch.setattr(register, "read", register.read)
    toy.install()
    for artifact in toy.PAPER.artifacts:
        artifact.runs.cache_clear()  # what they plan depends on the environment, which tests change
    yield
    registry.PAPERS.clear()
    registry.PAPERS.update(before)
    registry.paper.cache_clear()
    claims_of.cache_clear()


@pytest.fixture
def sgd(tmp_path: Path) -> Sgd:
    """Runs the command line with the toy paper in a folder of its own."""

    def call(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, toy.__file__, *map(str, arguments)]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, env=toy.environment(**variables), timeout=120
        )

    return call
