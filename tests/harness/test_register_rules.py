"""What the register holds of a claim: which edits are another rule, and how entries follow each other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import toy

from suite.claims.judge import Claim, KnownDifference
from suite.papers import register
from suite.papers.artifact import Artifact
from suite.papers.register import fingerprints, measure_of, measuring, rule_of, runs_of, spells
from suite.papers.registry import Registered
from suite.runs.fingerprint import present
from suite.spec import RunSpec

PRINTS = {"rule": "a", "measure": "b", "runs": "c"}
WORDS = ("it is ten", "Table 1", "within", "reduced", "cpu-small", "rounding")
CLAIM = Claim("toy/table1/it", *WORDS, (10.0,), "s", (1.0,), quantity="it")


@pytest.fixture
def home(tmp_path, papers, monkeypatch):
    """An empty home that the toy paper comes from."""
    (tmp_path / "published").mkdir()
    register.PAPERS["toy"] = Registered(lambda: toy.PAPER, tmp_path)  # until the toy paper goes again
    monkeypatch.setattr(register, "homes", lambda: [tmp_path])
    register.standings.cache_clear()
    yield tmp_path
    register.standings.cache_clear()


def row(change="registered", **other):
    return {**PRINTS, "change": change, **other}


@pytest.mark.parametrize(
    "changes",
    [
        {"printed": (11.0,)},
        {"unit": "min"},
        {"rule": "bound", "side": "lower"},
        {"tolerance": (2.0,)},
        {"relative": 0.1},
        {"quantity": "that"},
        {"profile": "paper"},
        {"doubt": "another table"},
        {"known_difference": KnownDifference("why", "shown")},
    ],
)
def test_what_decides_a_claim_makes_it_another_rule(changes):
    assert rule_of(replace(CLAIM, **changes)) != rule_of(CLAIM)


@pytest.mark.parametrize(
    "changes",
    [{"says": "ten it is"}, {"where": "p. 3"}, {"because": "it is so"}, {"finding": "so"}, {"lacks": "x"}],
)
def test_words_that_only_explain_leave_the_rule_as_it_is(changes):
    assert rule_of(replace(CLAIM, **changes)) == rule_of(CLAIM)


def test_of_a_known_difference_the_quantity_decides_and_the_reason_does_not():
    one, other, third = (
        rule_of(replace(CLAIM, known_difference=KnownDifference(*words)))
        for words in (("why", "shown"), ("because", "shown"), ("why", "another"))
    )
    assert one == other != third


def measure_it(evidence):
    yield "it", None


def measure_that(evidence):
    yield "that", None


def making(value):
    def made(evidence):
        yield value, None

    return made


def test_the_measures_of_a_quantity_are_those_that_name_it_or_else_all(monkeypatch):
    monkeypatch.setattr(register, "spells", lambda function, quantity: function.__name__.endswith(quantity))
    artifact = Artifact("toy/table1", "", measures=(measure_it, measure_that))
    assert measuring("it", artifact) == [measure_it]
    assert measuring("put-together", artifact) == [measure_it, measure_that]
    assert measuring("it", Artifact("toy/table1", "")) == []


def test_a_measure_names_a_quantity_as_a_whole_text():
    found = measuring("gain", Artifact("isgd/x", "", measures=(present, measure_it)))
    assert found == [present, measure_it]  # neither names it
    assert not spells(present, "gain")
    assert register.texts("suite.papers.trials:trials") >= {"reproduced", "not reproduced"}
    assert register.texts("suite.papers.trials:nothing") == register.texts("nowhere:nothing") == frozenset()


def test_what_a_measure_was_made_with_is_told_as_text():
    assert register.captured(making(3)) == ["3"]
    assert register.captured(making(measure_it)) == ["measure_it"]
    assert register.captured(measure_it) == []
    assert register.place_of(making(3)) == f"{__name__}:making"


def test_an_artifact_without_measures_or_runs_has_fingerprints_all_the_same():
    empty, none = Artifact("toy/table1", ""), fingerprints(CLAIM, None)
    assert fingerprints(CLAIM, empty) == {**none, "runs": runs_of(empty)}
    assert (none["rule"], none["measure"], none["runs"]) == (
        rule_of(CLAIM),
        measure_of(CLAIM, empty),
        register.digest(None),
    )


def test_the_runs_of_an_artifact_are_told_by_profile_and_group():
    def made(groups):
        return runs_of(Artifact("toy/table1", "", lambda profile: groups[profile]))

    spec, other = RunSpec("toy/draw"), RunSpec("toy/draw", seed=1)
    base = {"smoke": {"a": (spec,)}, "reduced": {}, "paper": {}}
    assert made(base) == made(dict(base))
    changed = [
        base | {"smoke": {"a": (other,)}},
        base | {"smoke": {"b": (spec,)}},
        base | {"smoke": {"a": (spec, other)}},
        base | {"paper": {"a": (spec,)}},
    ]
    assert len({made(base), *map(made, changed)}) == 5


def test_how_claims_stand_is_read_anew_after_an_entry(home):
    assert register.standings(home) == {}
    assert register.standing("toy/table1/it") is None
    register.append(home, "d0", "begun", {"toy/table1/it": row()})
    held = register.standing("toy/table1/it")
    assert (held.change, held.date, held.because, held.earlier) == ("registered", "d0", "begun", None)


def test_a_claim_s_own_reason_stands_over_its_entry_s(home):
    register.append(home, "d0", "begun", {"toy/a": row(because="found late"), "toy/b": row()})
    assert [standing.because for standing in register.standings(home).values()] == ["found late", "begun"]


@pytest.mark.parametrize(
    ("changes", "change", "date"),
    [
        (("registered", "registered"), "registered", "d1"),
        (("late", "registered"), "late", "d1"),
        (("undated", "registered"), "undated", "d1"),
        (("amended", "reworded"), "amended", "d0"),
        (("registered", "reworded"), "registered", "d0"),
        (("registered", "amended"), "amended", "d1"),
        (("late", "amended", "registered"), "amended", "d2"),
        (("reworded",), "reworded", "d0"),
        (("late", "withdrawn", "registered"), "registered", "d2"),
    ],
)
def test_what_once_came_after_its_evidence_stays_so(home, changes, change, date):
    for number, each in enumerate(changes):
        register.append(home, f"d{number}", "so", {"toy/a": row(each) if each != "withdrawn" else {"change": each}})
    held = register.standings(home)["toy/a"]
    assert (held.change, held.date) == (change, date)


def test_each_fingerprint_has_the_date_since_when_it_is_what_it_is(home):
    register.append(home, "d0", "so", {"toy/a": row()})
    register.append(home, "d1", "so", {"toy/a": row(measure="x")})
    register.append(home, "d2", "so", {"toy/a": row(measure="x", runs="y")})
    assert register.standings(home)["toy/a"].since == {"rule": "d0", "measure": "d1", "runs": "d2"}


def test_the_newest_entries_of_all_registers_have_one_digest(home, tmp_path, monkeypatch):
    other = tmp_path / "other"
    (other / "published").mkdir(parents=True)
    monkeypatch.setattr(register, "homes", lambda: [home, other])
    seen = [register.newest()]
    for place in (home, home, other, home):
        path = register.append(place, "d", f"entry {len(seen)}", {"toy/a": row()})
        seen.append(register.newest())
    assert len(set(seen)) == 5
    assert path == home / "published" / register.FILE
    assert [entry["because"] for entry in register.entries(home)] == ["entry 1", "entry 2", "entry 4"]
    assert [entry["because"] for entry in register.entries(other)] == ["entry 3"]


def test_a_register_is_a_line_for_each_claim(home):
    path = register.append(home, "d0", "begun", {"toy/a": row(), "toy/b": row("late")})
    register.append(home, "d1", "more", {"toy/c": row()})
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    assert [line.strip().partition(":")[0] for line in lines if line.startswith("  ")] == [
        '"toy/a"', '"toy/b"', '"toy/c"'
    ]  # fmt: skip
    first, second = json.loads(path.read_text())["entries"]
    assert (first["previous"], second["previous"]) == ("0" * 64, register.entry_digest(first))


def test_whatever_is_not_as_it_was_registered_is_named_with_what_differs(home, monkeypatch):
    now = {"toy/a": dict(PRINTS), "toy/b": dict(PRINTS)}
    monkeypatch.setattr(register, "today", lambda paper: now)
    everything = ["rule", "measure", "runs"]
    assert register.unregistered() == {"toy/a": everything, "toy/b": everything}
    register.append(home, "d0", "so", {"toy/a": row(), "toy/b": row(), "toys/a": row()})
    assert register.unregistered() == register.unregistered(["toy"]) == {}
    now["toy/b"] = PRINTS | {"rule": "x", "runs": "y"}
    assert register.unregistered() == {"toy/b": ["rule", "runs"]}
    del now["toy/b"]
    assert register.unregistered() == {"toy/b": ["withdrawn"]}
