"""The table of verdicts: what stands in it, at any width."""

from __future__ import annotations

import io
import threading
from dataclasses import replace

import pytest
from rich.console import Console

from suite.claims.judge import Claim, Verdict, judge, not_run
from suite.claims.measured import exact, interval
from suite.commands.check import evidence
from suite.commands.check_table import few, folded, reasons, show, table
from suite.commands.terminal import folded as fold_lines
from suite.runner.progress import CHOOSING, Progress

ROOMY = 1000  # columns

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


def test_printed_stands_beside_ours_with_interval_and_unit():
    head, *rows = [line.split("  ") for line in drawn(verdicts(), ROOMY)]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in (head, *rows)]
    assert cells == [
        [CLAIM.artifact, "printed", "ours", "verdict"],
        [NAME, "25%", "25.10 [24.60, 25.60]%", "reproduced"],
        [NAME, "25%", "30.00 [29.50, 30.50]%", "RED not reproduced"],
        [NAME, "25%", "shown only: 24%", "not run"],
    ]


def test_each_artifact_heads_its_own_claims_whose_names_are_indented(capsys):
    other = replace(CLAIM, id="toy/fig2/a-longer-name-than-the-other-one-has")
    show([*verdicts(), not_run(other, "needs a cluster")], verbose=False, closing=[])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["toy/fig1", "toy/fig2", f"{CLAIM.id}:"]
    assert sum(line.startswith(f"  {NAME}  25%  ") for line in lines) == 3


def test_of_many_values_four_are_shown():
    assert few(["a", "b", "c", "d"]) == "a, b, c, d"
    assert few(["a", "b", "c", "d", "e"]) == "a, b, c, d, and 1 more"
    assert few([]) == ""


def test_reasons_and_closing_lines_follow_the_table_as_they_are(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    red = Verdict(CLAIM, "not reproduced", "no [runs] of [draws]", exact(40.0), "smoke", red=True)
    show([red], verbose=False, closing=["closing [bold]line"])
    assert capsys.readouterr().out.splitlines()[2:] == [
        "",
        f"{CLAIM.id}: no [runs] of [draws]",
        "closing [bold]line",
    ]
    show([], verbose=True, closing=["nothing"])
    assert capsys.readouterr().out == "nothing\n"


def test_what_a_verdict_rests_on_has_a_column_where_one_of_them_says():
    found = [Verdict(CLAIM, "reproduced", "so", exact(25.0), "smoke", rests_on="reduced"), verdicts()[0]]
    assert drawn(found, ROOMY)[0].split() == ["toy/fig1", "printed", "ours", "rests", "on", "verdict"]
    assert "reduced" in drawn(found, ROOMY)[1]


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(width: int):
    lines = drawn(verdicts(), width)
    assert max(map(len, lines)) <= width
    for word in ("reproduced", "25%", "[24.60,", "25.60]%"):
        assert any(word in line.split() for line in lines)


def test_names_break_after_hyphens():
    assert folded(NAME, 20).split("\n") == ["an-error-of-the-", "network"]
    assert folded("a" * 40, 20) == "a" * 40
    assert folded(NAME, len(NAME)) == NAME


def test_other_commands_fold_their_lines_at_words():
    line = "isgd/fig5a  4 claims  MNIST test accuracy, SGD and ISGD  [smoke 4 committed of 4, reduced 0 of 10]"
    found = fold_lines([line, "short"], 40)
    assert [part for text in found for part in text.split()] == [*line.split(), "short"]
    assert max(map(len, found)) <= 40
    assert found[1].startswith("    ")


def test_red_claims_are_explained_without_being_asked():
    assert reasons(verdicts(), every=False) == [f"{CLAIM.id}: the whole interval lies outside the tolerance"]
    assert len(reasons(verdicts(), every=True)) == 3


def test_the_evidence_is_counted_by_whose_it_is():
    assert evidence(verdicts(), {"a", "z"}) == "evidence: 1 yours, 1 committed"
    assert evidence([], {"a"}) == "evidence: 0 yours, 0 committed"


def test_a_log_is_told_that_work_goes_on(monkeypatch):
    told, seen = [], threading.Event()

    class Log(io.StringIO):
        def write(self, text: str) -> int:
            told.append(text)
            if "under way" in text:
                seen.set()
            return len(text)

    monkeypatch.setattr("sys.stderr", Log())
    with Progress({"a": 1.0, "b": 3.0}, every=0.01) as progress:
        progress.update("b", 0.5)
        seen.clear()
        assert seen.wait(60)
    line = next(text for text in reversed(told) if "under way" in text)
    assert line.startswith("[0/2] 1 under way, 38% done; ")


def test_while_no_run_is_under_way_it_says_that_an_execution_is_chosen(capsys):
    progress = Progress({"a": 1.0, "b": 3.0})
    progress._tell()
    assert capsys.readouterr().err == f"[0/2] {CHOOSING}; 0 s gone\n"
    progress.update("a", 0.0)  # its execution is chosen
    progress._tell()
    assert capsys.readouterr().err == "[0/2] 1 under way, 0% done; 0 s gone\n"


def test_on_a_terminal_a_bar_fills_by_cost(monkeypatch):
    """Four weights, three of them in one run; what is said in between stands above the bar."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    with Progress({"a": 1.0, "b": 3.0}) as progress:
        (task,) = progress._bar.tasks
        assert (task.total, task.completed, task.description) == (4.0, 0.0, "0/2 runs")
        progress.update("b", 0.5)
        assert task.completed == 1.5
        progress.finish("b", "b: stored")
        progress.note("waiting for [1] run")
        assert (task.completed, task.description, progress.done) == (3.0, "1/2 runs", 0.75)
    assert "waiting for [1] run" in screen.getvalue()
    assert "b: stored" not in screen.getvalue()
    assert progress._bar.live.is_started is False


def test_without_a_terminal_a_run_s_end_is_a_line_and_nothing_where_nobody_need_be_told(capsys):
    with Progress({"a": 1.0, "b": 3.0}) as progress:
        progress.finish("b", "")
        assert capsys.readouterr().err == ""
        progress.finish("a", "a: stored")
    assert capsys.readouterr().err.startswith("[2/2] a: stored; ")


def test_what_was_not_computed_here_tells_nothing_of_the_time_left(capsys, monkeypatch):
    """Of six seconds' work one was there and three are left for later: two remain, of which ten seconds did half."""
    clock = iter((0.0, 10.0, 20.0, 20.0))
    monkeypatch.setattr("suite.runner.progress.time.monotonic", lambda: next(clock))
    progress = Progress({"there": 1.0, "late": 3.0, "a": 1.0, "b": 1.0})
    progress.finish("there", "", computed=False)
    progress.update("late", 1.0)  # as a run ends that was not begun
    progress.update("a", 1.0)
    progress.finish("late", "late", computed=False)
    assert progress.done == 0.5
    assert "10 s gone, about 10 s left" in capsys.readouterr().err
    progress._gone += 1e-9
    progress.finish("a", "a")
    progress.finish("b", "b")
    assert "20 s gone, about 0 s left" in capsys.readouterr().err.splitlines()[-1]
