"""The register is append-only, orders rules and evidence, and knows every rule of today."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suite.commands import register as command
from suite.commands.register import change_of
from suite.papers import register

PRINTS = {"rule": "a", "measure": "b", "runs": "c"}


@pytest.fixture
def home(tmp_path: Path):
    (tmp_path / "published").mkdir()
    yield tmp_path
    register.standings.cache_clear()


def test_no_rule_has_changed_without_an_entry():
    """`sgd-suite register --because "..."` makes one."""
    assert register.unregistered() == {}


def test_entries_form_a_chain(home: Path):
    path = register.append(home, "d0", "first", {"toy/a": {**PRINTS, "change": "registered"}})
    register.append(home, "d1", "second", {"toy/a": {**PRINTS, "rule": "d", "change": "amended"}})
    assert [entry["because"] for entry in register.entries(home)] == ["first", "second"]
    path.write_text(path.read_text().replace('"rule": "a"', '"rule": "x"'))
    with pytest.raises(register.RegisterError, match="entry 1 does not follow"):
        register.entries(home)


def test_an_amended_claim_stays_amended_when_it_is_reworded(home: Path):
    earlier, changed = {"verdict": "inconclusive"}, {**PRINTS, "rule": "d", "change": "amended"}
    register.append(home, "d0", "begun", {"toy/a": {**PRINTS, "change": "registered"}})
    register.append(home, "d1", "narrowed", {"toy/a": {**changed, "earlier": earlier}})
    register.append(home, "d2", "typo", {"toy/a": {**PRINTS, "rule": "e", "change": "reworded"}})
    held = register.standings(home)["toy/a"]
    assert (held.change, held.date, held.because, held.earlier) == ("amended", "d1", "narrowed", earlier)
    assert held.fingerprints["rule"] == "e"
    assert held.since == {"rule": "d2", "measure": "d0", "runs": "d0"}


def test_a_withdrawn_claim_stands_no_more(home: Path):
    register.append(home, "d0", "begun", {"toy/a": {**PRINTS, "change": "registered"}})
    register.append(home, "d1", "gone", {"toy/a": {"change": "withdrawn"}})
    assert register.standings(home) == {}


NOT_RUN, YES, NO = ({"verdict": verdict} for verdict in ("not run", "reproduced", "not reproduced"))


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (None, NOT_RUN, "registered"),
        (None, YES, "late"),
        (NOT_RUN, NOT_RUN, "registered"),
        (NOT_RUN, YES, "late"),
        (YES, YES, "reworded"),
        (NO, YES, "amended"),
        (YES, NOT_RUN, "amended"),
        (YES, {**YES, "values": [1.0]}, "amended"),
        ({**YES, "values": [1.0]}, {**YES, "values": [1.0 + 1e-12]}, "reworded"),
        ({**YES, "values": [1.0]}, {**YES, "values": [1.0, 2.0]}, "amended"),
        ({**YES, "values": [1.0]}, {**YES, "values": ["inf"]}, "amended"),
        (YES, None, "withdrawn"),
    ],
)
def test_what_the_earlier_rule_says_of_the_same_runs_decides(old, new, change):
    assert change_of(old, new) == change


def test_what_a_rule_made_of_the_runs_is_plain_json():
    """Infinite ends, and what is no number, as texts; the same from a verdict as from a row of ``check --json``."""
    spans = {"values": (0.5, math.nan), "low": (-math.inf, 0.25), "high": (math.inf, 1.0)}
    plain = {"values": [0.5, "nan"], "low": ["-inf", 0.25], "high": ["inf", 1.0]}
    verdict: Any = SimpleNamespace(verdict="reproduced", measured=SimpleNamespace(**spans))
    assert command.read(verdict) == {"verdict": "reproduced", **plain}
    assert command.read_row({"verdict": "reproduced", "ours": {**plain, "n": 3}}) == command.read(verdict)
    assert command.read_row({"verdict": "not run", "ours": None}) == NOT_RUN


@pytest.mark.parametrize(("changed", "replays"), [(["toy/new"], False), (["toy/new", "toy/old"], True)])
def test_the_earlier_rule_is_replayed_where_any_changed_claim_had_one(
    home: Path, monkeypatch: pytest.MonkeyPatch, changed: list[str], replays: bool
):
    """A claim that is new has none; an old one is held against what its rule of before says today."""
    register.append(home, "d0", "begun", {"toy/old": {**PRINTS, "change": "registered"}})
    asked = []

    def replay(revision: str, papers: list[str], home: Path) -> dict:
        asked.append((revision, papers))
        return {"toy/old": NO}

    verdicts = [SimpleNamespace(claim=SimpleNamespace(id=name)) for name in changed]
    monkeypatch.setattr(command, "homes", lambda: [home])
    monkeypatch.setattr(command, "papers_of", lambda home: ["toy"])
    monkeypatch.setattr(command, "unregistered", lambda papers: {claim: ["rule"] for claim in changed})
    monkeypatch.setattr(command, "paper", lambda name: name)
    monkeypatch.setattr(command, "today", lambda paper: dict.fromkeys(changed, PRINTS))
    monkeypatch.setattr(command, "verdicts", lambda paper, source: verdicts)
    monkeypatch.setattr(command, "read", lambda verdict: YES)
    monkeypatch.setattr(command, "replay", replay)
    (said,) = command.register("a reason", "before")
    assert asked == ([("before", ["toy"])] if replays else [])
    rows = register.entries(home)[-1]["claims"]
    assert rows["toy/new"]["change"] == "late"
    assert "earlier" not in rows["toy/new"]
    if replays:
        assert (rows["toy/old"]["change"], rows["toy/old"]["earlier"]) == ("amended", NO)
        assert said.endswith("1 late, 1 amended")


@pytest.mark.parametrize("because", ["", " \n"])
def test_no_entry_is_made_without_a_reason(because: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(command, "homes", list)
    with pytest.raises(register.RegisterError, match="--because is empty; say why"):
        command.register(because)


def test_the_committed_register_is_whole():
    """Its chain holds, and every entry names the three fingerprints of what it changes."""
    for home in register.homes():
        for entry in register.entries(home):
            for row in entry["claims"].values():
                assert row["change"] in register.CHANGES
                assert row["change"] == "withdrawn" or set(register.PARTS) <= set(row)
            json.dumps(entry)
