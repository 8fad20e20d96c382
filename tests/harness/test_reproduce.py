"""The main job: what it says, and with which exit status it ends."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from suite.commands import reproduce
from suite.runs.run import StoreError

COMMITTED = {"p/fig1/a": "reproduced", "p/fig1/b": "not reproduced"}


def verdict(name: str, found: str, timed: bool = False):
    claim = SimpleNamespace(id=f"p/fig1/{name}", paper="p", timed=timed)
    return SimpleNamespace(claim=claim, verdict=found, why="so it came")


@pytest.fixture
def job(monkeypatch, tmp_path):
    """The job with its parts replaced: how many runs fail, and which verdicts come out."""
    asked = {}

    def run(*found, failed=0, selectors=()):
        page = (Path("report/index.html"), SimpleNamespace(faults=()))
        parts = {"select": [], "run_artifacts": failed, "judge_selection": list(found), "board": None}
        parts |= {"open_runs": None, "with_committed": None, "write_site": page, "committed_verdicts": COMMITTED}
        parts["lines"] = [f"{len(found)} claims", "and what they say"]
        for name, made in parts.items():
            given = lambda *args, name=name, made=made: asked.update({name: args}) or made
            monkeypatch.setattr(reproduce, name, given)
        with pytest.raises(typer.Exit) as end:
            reproduce.command(selectors, store=tmp_path / "store", out=tmp_path / "report")
        return end.value.exit_code

    run.asked = asked
    return run


BOTH = (verdict("a", "reproduced"), verdict("b", "not reproduced"))


def test_verdicts_as_committed_end_well_unless_a_run_failed(job, capsys):
    assert job(*BOTH) == 0
    told = capsys.readouterr()
    said = ["2 claims", "and what they say", "report/index.html", "all 2 verdicts at smoke equal the committed ones"]
    assert (told.out.splitlines(), told.err) == (said, "")
    assert job(*BOTH, failed=1) == 1


def test_another_verdict_is_named(job, capsys):
    assert job(verdict("a", "inconclusive"), BOTH[1]) == 1
    told = capsys.readouterr()
    assert told.err == "changed: p/fig1/a: inconclusive, committed reproduced (so it came)\n"
    assert "equal the committed" not in told.out


def test_a_claim_of_which_nothing_is_committed_is_expected_not_to_be_measured(job, capsys):
    assert job(*BOTH, verdict("c", "not run")) == 0
    assert job(*BOTH, verdict("c", "reproduced")) == 1
    assert job(verdict("a", "not run"), BOTH[1]) == 1
    assert "p/fig1/c: reproduced, committed nothing" in capsys.readouterr().err


def test_a_claim_that_is_gone_is_missed_in_the_whole_and_not_in_a_part(job, capsys):
    assert job(BOTH[0]) == 1
    assert capsys.readouterr().err == "changed: p/fig1/b: no such claim, committed not reproduced\n"
    assert job(BOTH[0], selectors=("p/fig1",)) == 0
    assert job.asked["write_site"][-1] == ("p/fig1",), "a part of the artifacts is reported alone"


def test_a_page_of_somebody_else_is_told_before_anything_runs(monkeypatch, tmp_path):
    (tmp_path / "index.html").write_text("<p>mine</p>")
    monkeypatch.setattr(reproduce, "run_artifacts", pytest.fail)
    with pytest.raises(StoreError, match=r"was not written by `report`"):
        reproduce.command(store=tmp_path / "store", out=tmp_path)


def test_accepting_one_papers_verdicts_leaves_another_packages_file_as_it_is(monkeypatch, tmp_path):
    homes = {name: SimpleNamespace(home=tmp_path / name) for name in ("p", "q")}
    known = COMMITTED | {"p/fig1/gone": "reproduced", "q/fig1/a": "reproduced"}
    monkeypatch.setattr(reproduce, "PAPERS", homes)
    monkeypatch.setattr(reproduce, "papers_of", lambda home: [home.name])
    monkeypatch.setattr(reproduce, "published", lambda name: [verdict(each, "").claim for each in "abc"])
    monkeypatch.setattr(reproduce, "committed_verdicts", lambda profile: known)
    homes["p"].home.mkdir()
    (written,) = reproduce.write_verdicts("smoke", [verdict("a", "inconclusive"), verdict("c", "not run")])
    assert written == tmp_path / "p" / "evidence" / "verdicts-smoke.json"
    assert json.loads(written.read_text()) == {"p/fig1/a": "inconclusive", "p/fig1/b": "not reproduced"}
    assert not homes["q"].home.exists()
