"""Whose code made a run: the present, code known to give the same bits through a chain of pairs, or other."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from suite.papers import code
from suite.papers.code import NOBODYS, OTHER, PRESENT, count, made_by
from suite.runs.fingerprint import UNKNOWN

PAIRS = frozenset(
    {
        ("train", "oldest", "older"),
        ("train", "older", "old"),
        ("train", "old", "now"),
        ("train", "later", "later still"),
        ("sweep", "foreign", "now"),
    }
)


def run(made: str, experiment: str = "train") -> SimpleNamespace:
    return SimpleNamespace(id="0", environment={"code": made}, spec=SimpleNamespace(experiment=experiment))


@pytest.fixture(autouse=True)
def pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "same_numbers", lambda: PAIRS)
    monkeypatch.setattr(code, "_present", lambda name: {"gone": UNKNOWN}.get(name, "now"))
    monkeypatch.setattr(code, "table", dict)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("now", PRESENT),
        ("old", PRESENT),
        ("oldest", PRESENT),
        ("foreign", OTHER),  # the same numbers in another experiment
        ("later", OTHER),
        ("never seen", OTHER),
        (UNKNOWN, NOBODYS),
    ],
)
def test_a_chain_leads_forward_and_within_its_experiment(made: str, expected: str):
    assert made_by(run(made)) == expected


def test_a_pair_is_no_way_back():
    assert made_by(run("now", "sweep")) == PRESENT
    assert made_by(run("old", "sweep")) == OTHER


def test_an_experiment_that_is_not_here_has_no_present_code():
    assert made_by(run("now", "gone")) == NOBODYS
    assert count([run("old"), run("now"), run("later"), run("now", "gone")]) == {PRESENT: 2, OTHER: 1, NOBODYS: 1}
