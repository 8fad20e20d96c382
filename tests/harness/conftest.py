"""Fixtures of the harness tests: the toy paper in this process, its command line in another."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import toy

from suite.papers import catalogue, evidence, register
from suite.papers.catalogue import entries as claims_of

Sgd = Callable[..., subprocess.CompletedProcess[str]]
TIMEOUT = 600.0  # seconds that a command may take


@pytest.fixture
def papers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy paper instead of the five, until the test ends."""
    before = dict(catalogue.PAPERS)
    monkeypatch.setattr(evidence, "folders", evidence.folders)
    monkeypatch.setattr(register, "read", register.read)
    toy.install()
    for artifact in toy.PAPER.artifacts:
        artifact.ids.cache_clear()
        artifact.runs.cache_clear()  # what they plan depends on the environment, which tests change
    yield
    catalogue.PAPERS.clear()
    catalogue.PAPERS.update(before)
    catalogue.paper.cache_clear()
    claims_of.cache_clear()


@pytest.fixture(scope="session")
def forking() -> Iterator[subprocess.Popen[str]]:
    """The process whose forks run the command line."""
    process = subprocess.Popen(
        [sys.executable, str(toy.HERE / "forked.py")],
        env=toy.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield process
    process.communicate()


@pytest.fixture
def sgd(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, forking: subprocess.Popen[str]) -> Sgd:
    """Runs the command line with the toy paper in a folder of its own."""
    said = tmp_path_factory.mktemp("said")

    def call(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        command = list(map(str, arguments))
        asked = {"arguments": command, "folder": str(tmp_path), "environment": toy.environment(**variables)}
        print(json.dumps(asked | {name: str(said / name) for name in ("out", "err")}), file=forking.stdin, flush=True)
        if not select.select([forking.stdout], [], [], TIMEOUT)[0]:
            os.killpg(forking.pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(command, TIMEOUT)
        code = int(forking.stdout.readline())
        return subprocess.CompletedProcess(command, code, *((said / name).read_text() for name in ("out", "err")))

    return call
