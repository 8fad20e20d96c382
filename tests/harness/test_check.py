"""What ``check`` writes: for programs, for a terminal of any width, for a log; and the codes it ends with."""

from __future__ import annotations

import io
import json
import math
import threading

import pytest
import typer
from estimates import interval
from rich.console import Console

from suite.claims.estimate import Estimate
from suite.claims.estimate import over_seeds as exact
from suite.claims.judge import Claim, Verdict, judge, not_run
from suite.commands import check
from suite.runner.progress import Progress
from suite.runs.comparison import Survey

CLAIM = Claim(
    "toy/fig1/an-error-of-the-network", "it errs", "1", "within", "smoke", "gpu", "a point", (25.0,), "%", (1.0,)
)


def test_what_json_cannot_hold_is_written_as_text():
    ours = Estimate((0.5, math.nan), (-math.inf, 0.25), (math.inf, 1.0), n=3, runs=("a",))
    found = check.row(Verdict(CLAIM, "inconclusive", "wide", ours, "smoke"))
    spans = {name: found["ours"][name] for name in ("values", "low", "high")}
    assert spans == {"values": [0.5, "nan"], "low": ["-inf", 0.25], "high": ["inf", 1.0]}
    assert (found["ours"]["n"], found["ours"]["runs"], found["proxy"]) == (3, ["a"], None)
    json.dumps(found, allow_nan=False)


def test_a_contested_run_is_red_where_no_claim_rests_on_it(monkeypatch, capsys):
    contested = Survey(kinds={"r": "contested"}, contested={"r": "run r"})
    monkeypatch.setattr(check, "judge_selection", lambda *selection: [])
    monkeypatch.setattr(check, "held_twice", lambda *selection: contested)
    with pytest.raises(typer.Exit) as end:
        check.command(as_json=True)
    assert end.value.exit_code == 1
    assert "CONTESTED run r" in capsys.readouterr().err


def verdicts() -> list[Verdict]:
    near, far = (interval(v, v - 0.5, v + 0.5, runs=[name]) for v, name in ((25.1, "a"), (30.0, "b")))
    return [judge(CLAIM, near, "smoke"), judge(CLAIM, far, "smoke"), not_run(CLAIM, "needs a cluster", exact(24.0))]


def drawn(found: list[Verdict], width: int) -> list[str]:
    out = Console(file=io.StringIO(), width=width)
    out.print(check.table(found))
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


def test_a_narrower_terminal_cuts_no_column_off(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert check.console().width == 80


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(width: int):
    lines = drawn(verdicts(), width)
    assert max(map(len, lines)) <= width
    for word in ("reproduced", "25%", "[24.60,", "25.60]%"):
        assert any(word in line.split() for line in lines)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_log_is_told_that_work_goes_on_and_a_terminal_has_it_on_one_line(monkeypatch, terminal: bool):
    told, seen = [], threading.Event()

    class Log(io.StringIO):
        def write(self, text: str) -> int:
            told.append(text)
            if "under way" in text:
                seen.set()
            return len(text)

        def isatty(self) -> bool:
            return terminal

    monkeypatch.setattr("sys.stderr", Log())
    with Progress({"a": 1.0, "b": 3.0}, {"b": 4000}, every=0.01) as progress:
        progress.finish("a", "", computed=False)  # stored already
        progress.update("b", 0.5)
        seen.clear()
        assert seen.wait(60)
    line = next(text for text in reversed(told) if "under way" in text)
    begins = "\r\x1b[K" * terminal
    assert line.startswith(f"{begins}[1/2] 1 under way (update 2,000 of 4,000), 50% done; ")
    assert ("\n" in "".join(told)) is not terminal
