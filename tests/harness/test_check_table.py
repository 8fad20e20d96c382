"""The table of verdicts: what stands in it, at any width."""

from __future__ import annotations

import io
import threading

import pytest
from estimates import interval
from rich.console import Console

from suite.claims.estimate import exact
from suite.claims.judge import Claim, Verdict, judge, not_run
from suite.commands.check import table
from suite.runner.progress import Progress

CLAIM = Claim(
    "toy/fig1/an-error-of-the-network", "it errs", "1", "within", "smoke", "gpu", "a point", (25.0,), "%", (1.0,)
)
NAME = "an-error-of-the-network"


def verdicts() -> list[Verdict]:
    near, far = (interval(v, v - 0.5, v + 0.5, runs=[name]) for v, name in ((25.1, "a"), (30.0, "b")))
    return [judge(CLAIM, near, "smoke"), judge(CLAIM, far, "smoke"), not_run(CLAIM, "needs a cluster", exact(24.0))]


def drawn(found: list[Verdict], width: int) -> list[str]:
    out = Console(file=io.StringIO(), width=width)
    out.print(table(found))
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(width: int):
    lines = drawn(verdicts(), width)
    assert max(map(len, lines)) <= width
    for word in ("reproduced", "25%", "[24.60,", "25.60]%"):
        assert any(word in line.split() for line in lines)


def test_a_log_is_told_that_work_goes_on(monkeypatch):
    told, seen = [], threading.Event()

    class Log(io.StringIO):
        def write(self, text: str) -> int:
            told.append(text)
            if "under way" in text:
                seen.set()
            return len(text)

    monkeypatch.setattr("sys.stderr", Log())
    with Progress({"a": 1.0, "b": 3.0}, {"b": 4000}, every=0.01) as progress:
        progress.finish("a", "", computed=False)  # stored already
        progress.update("b", 0.5)
        seen.clear()
        assert seen.wait(60)
    line = next(text for text in reversed(told) if "under way" in text)
    assert line.startswith("[1/2] 1 under way (update 2,000 of 4,000), 50% done; ")
