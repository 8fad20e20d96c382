"""What commands hand on of their options, and what they do where none are given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suite.cli import main
from suite.commands.submit import Request

STORE, REPORT = Path("runs.store"), Path("report")
Sgd = Callable[..., SimpleNamespace]


@pytest.fixture(autouse=True)
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder to work in, and names for the runs that are judged."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("suite.papers.evidence.with_committed", lambda store: ("all", store))
    monkeypatch.setattr("suite.papers.evidence.of_user", lambda store: ("mine", store))
    monkeypatch.setattr("suite.papers.evidence.ids_of_user", lambda store, **_: {"a"})


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Sgd:
    """Runs the command line in this process."""

    def made(*words: str) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["sgd-suite", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        stdout, stderr = capsys.readouterr()
        return SimpleNamespace(exit_code=ended.value.code, stdout=stdout, stderr=stderr)

    return made


RUN = "run isgd --profile paper --store s --data d --device cpu --workers 1 --budget 1"
HANDED = {
    "run": ("run.run_selection", "run --profile smoke", ([], "smoke", STORE, None, "auto", 1, None),
            {"wait": True, "share": None, "memory": None, "seeds": None}),
    "run, all said": (
        "run.run_selection",
        f"{RUN} --no-wait --share 0/1 --memory 1 --seeds 1",
        (["isgd"], "paper", Path("s"), Path("d"), "cpu", 1, 1.0),
        {"wait": False, "share": (0, 1), "memory": 1, "seeds": 1},
    ),
    "run on an engine": ("submit.submit_selection", "run --profile smoke --on x",
                         ([], "smoke", STORE, None, "auto", 1, Request("x", None, None, False, False)), {}),
    "run on an engine, all said": (
        "submit.submit_selection",
        "run isgd --profile smoke --on x --jobs 1 --engine-options o.toml --dry-run --wait",
        (["isgd"], "smoke", STORE, None, "auto", 1, Request("x", 1, Path("o.toml"), True, True)),
        {},
    ),
    "reproduce": ("reproduce.reproduce_selection", "reproduce",
                  ([], "smoke", STORE, None, "auto", 1, None, REPORT, False), {}),
    "reproduce, all said": (
        "reproduce.reproduce_selection",
        "reproduce isgd --profile paper --store s --workers 2 --budget 5 --out o --accept",
        (["isgd"], "paper", Path("s"), None, "auto", 2, 5.0, Path("o"), True),
        {},
    ),
    "check": ("check.check_selection", "check", ([], None, ("all", None), {"a"}),
              {"as_json": False, "junit_path": None, "verbose": False}),
    "check, all said": (
        "check.check_selection",
        "check isgd --profile smoke --store s --only-mine --verbose --json --junit f.xml",
        (["isgd"], "smoke", ("mine", Path("s")), {"a"}),
        {"as_json": True, "junit_path": Path("f.xml"), "verbose": True},
    ),
    "falsify": ("falsify.falsify_selection", "falsify", ([], ("all", None), False), {}),
    "falsify, all said": ("falsify.falsify_selection", "falsify isgd --store s --json",
                          (["isgd"], ("all", Path("s")), True), {}),
}  # fmt: skip


@pytest.mark.parametrize(("place", "words", "arguments", "named"), HANDED.values(), ids=HANDED)
@pytest.mark.parametrize("code", [0, 1])
def test_a_command_hands_its_options_on_and_ends_with_the_code_of_what_it_called(
    call: Sgd, monkeypatch: pytest.MonkeyPatch, place: str, words: str, arguments: tuple, named: dict, code: int
):
    given: list[Any] = []
    monkeypatch.setattr(f"suite.commands.{place}", lambda *some, **more: (given.append((some, more)), code)[1])
    assert call(*words.split()).exit_code == code
    assert given == [(arguments, named)]


def state(queued: int, running: int) -> dict[str, Any]:
    counts = {"queued": queued, "running": running}
    return {"store": "s", "counts": counts, "runs": {}, "jobs": {}, "seconds_left": None}


def test_status_is_told_again_until_nothing_is_left(call: Sgd, monkeypatch: pytest.MonkeyPatch):
    naps: list[float] = []
    monkeypatch.setattr("time.sleep", naps.append)
    for words, looks in (([], 1), (["--watch"], 4), (["--watch", "--json"], 1)):
        states = iter([state(1, 0), state(1, 1), state(0, 1), state(0, 0)])
        monkeypatch.setattr("suite.commands.status.status", lambda store, states=states: next(states))
        done = call("status", *words)
        assert len(list(states)) == 4 - looks
        assert len(naps) == looks - 1
        assert done.stdout.count("queued") == looks
        assert done.stdout.startswith("{") == ("--json" in words)
        del naps[:]
