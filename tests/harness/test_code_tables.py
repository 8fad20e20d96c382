"""The tables beside the evidence that say which code made its runs."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from suite.papers import code
from suite.papers.code import NOBODYS, OTHER, PRESENT, code_of, made_by
from suite.papers.registry import experiment
from suite.runs.fingerprint import UNKNOWN


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two papers' folders of evidence, one without tables."""
    places = [tmp_path / "one", tmp_path / "two"]
    for place in places:
        place.mkdir()
    monkeypatch.setattr(code, "folders", lambda: places)
    for kept in (code.table, code.same_numbers):
        kept.cache_clear()
    yield places
    for kept in (code.table, code.same_numbers):
        kept.cache_clear()


def run(run_id="a", **environment):
    return SimpleNamespace(id=run_id, environment=environment, spec=SimpleNamespace(experiment="train"))


def test_the_fingerprint_is_the_run_s_own_then_the_table_s_then_unknown(folders):
    (folders[1] / code.TABLE).write_text(
        json.dumps({"a": {"code": "tabled", "revision": "r"}, "b": {"revision": "r"}})
    )
    assert code_of(run("a", code="own")) == "own"
    assert code_of(run("a")) == "tabled"
    assert code_of(run("b")) == code_of(run("c")) == UNKNOWN


def test_tables_of_several_papers_are_read_together(folders):
    for place, run_id in zip(folders, "ab", strict=True):
        (place / code.TABLE).write_text(json.dumps({run_id: {"code": f"of {run_id}"}}))
    assert [code_of(run(run_id)) for run_id in "ab"] == ["of a", "of b"]


def test_without_tables_nothing_is_known_and_nothing_is_the_same(folders):
    assert (code.table(), code.same_numbers()) == ({}, frozenset())


def test_pairs_of_code_that_gives_the_same_numbers_are_read_by_experiment(folders):
    present = experiment("train").code
    pair = {"experiment": "train", "old": "before", "new": present}
    (folders[0] / code.SAME).write_text(json.dumps([pair, pair | {"experiment": "other", "old": "elsewhere"}]))
    assert code.same_numbers() == {("train", "before", present), ("other", "elsewhere", present)}
    made = [made_by(run(code=fingerprint)) for fingerprint in (present, "before", "elsewhere", UNKNOWN)]
    assert made == [PRESENT, PRESENT, OTHER, NOBODYS]


def test_a_run_of_a_paper_that_is_not_here_has_nobody_s_code(folders):
    gone = SimpleNamespace(id="a", environment={"code": "own"}, spec=SimpleNamespace(experiment="nobody/trains"))
    assert made_by(gone) == NOBODYS
