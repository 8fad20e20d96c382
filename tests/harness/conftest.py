"""Fixtures of the harness tests: the toy paper in this process, its command line in another."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import toy

from suite.papers import catalogue, register
from suite.papers.catalogue import entries as claims_of
from suite.runner.execute import RunnerConfig
from suite.runs.store import Store

Sgd = Callable[..., subprocess.CompletedProcess[str]]
TIMEOUT = 600.0  # seconds that a command may take


@pytest.fixture
def papers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy paper instead of the five, until the test ends."""
    before = dict(catalogue.PAPERS)
    monkeypatch.setattr(catalogue, "folders", catalogue.folders)
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


@pytest.fixture
def around(tmp_path: Path) -> RunnerConfig:
    """Where runs are executed: a store in the test's folder."""
    return RunnerConfig(tmp_path / "store")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", create=True)


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


class Command:
    """A command line under way in a process of its own, and of a group of its own."""

    def __init__(self, forking: subprocess.Popen[str], said: Path, asked: dict[str, Any]):
        self.forking, self.said, self.returncode = forking, said, None
        self.pid = self._ask(asked | {name: str(said / name) for name in ("out", "err")})

    def _ask(self, asked: dict[str, Any], seconds: float | None = None) -> Any:
        print(json.dumps(asked), file=self.forking.stdin, flush=True)
        if not select.select([self.forking.stdout], [], [], seconds)[0]:
            self.kill()
            raise subprocess.TimeoutExpired(str(self.said), seconds)
        return json.loads(self.forking.stdout.readline())

    @property
    def told(self) -> str:
        """What it has said on stderr so far."""
        return (self.said / "err").read_text() if (self.said / "err").exists() else ""

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._ask({"wait": self.pid, "flags": os.WNOHANG})
        return self.returncode

    def wait(self, seconds: float = TIMEOUT) -> int:
        if self.returncode is None:
            self.returncode = self._ask({"wait": self.pid, "flags": 0}, seconds)
        return self.returncode

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def gone(self, seconds: float = 60.0) -> bool:
        """Whether it and whatever it has started end within the time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                os.killpg(self.pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.05)
        return False

    def kill(self) -> None:
        """End it, with whatever it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


@pytest.fixture
def started(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, forking: subprocess.Popen[str]
) -> Iterator[Callable[..., Command]]:
    """Starts the command line with the toy paper in the test's folder; what goes on when the test ends is killed."""
    commands: list[Command] = []

    def start(*arguments: object, **variables: str) -> Command:
        asked = {"arguments": list(map(str, arguments)), "folder": str(tmp_path)}
        asked["environment"] = toy.environment(**variables)
        commands.append(Command(forking, tmp_path_factory.mktemp("said"), asked))
        return commands[-1]

    yield start
    for command in commands:
        command.kill()
        command.wait()


@pytest.fixture
def sgd(started: Callable[..., Command]) -> Sgd:
    """Runs the command line with the toy paper in the test's folder."""

    def call(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        command = started(*arguments, **variables)
        code = command.wait()
        return subprocess.CompletedProcess([], code, (command.said / "out").read_text(), command.told)

    return call
