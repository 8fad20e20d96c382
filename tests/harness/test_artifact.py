"""Artifacts and their evidence: what is read of a run is noted, and names that no selector could mean are refused."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from suite.papers.artifact import (
    Evidence,
    Missing,
    Paper,
    PaperError,
    check_name,
    few_seeds,
)
from suite.runs.archive import Layered
from suite.runs.store import Outcome, Store, encode
from suite.spec import RunSpec

SPECS = tuple(RunSpec("toy/draw", {"number": number}) for number in range(3))
TABLE = pd.DataFrame({"update": [0, 1]})


def stored(root, *specs, value=1.0):
    store = Store(root, create=True)
    for spec in specs:
        store.commit(spec.id, encode(spec, {"machine": {}}, Outcome("finished", {"value": value}, {"t": TABLE})))
    return store


@pytest.fixture
def evidence(tmp_path):
    return Evidence(stored(tmp_path, *SPECS), {"one": SPECS[:1], "all": SPECS}, "smoke")


@pytest.mark.parametrize(
    ("read", "results"),
    [
        (lambda run: run.results["value"], {"value"}),
        (lambda run: run.results.get("value"), {"value"}),
        (lambda run: run.results.get("absent", 3.0), {"absent"}),
        (lambda run: run.results, set()),
        (lambda run: run.curve("t"), set()),
        (lambda run: run.spec, set()),
        (lambda run: run.environment, set()),
        (lambda run: run.outcome, set()),
        (lambda run: run.files, set()),
    ],
)
def test_whatever_is_read_of_a_run_is_noted_with_the_results_by_name(evidence, read, results):
    run = evidence.run("one")
    assert evidence.reads.taken() == {}
    read(run)
    assert evidence.reads.taken() == {run.id: results}
    assert evidence.reads.taken() == {}


def test_runs_that_are_not_stored_are_counted_in_their_group(tmp_path):
    evidence = Evidence(stored(tmp_path, SPECS[0]), {"all": SPECS, "none": ()}, "reduced")
    with pytest.raises(Missing, match=r"^2 of 3 runs of 'all' at reduced are missing$"):
        evidence.runs("all")
    for name in ("none", "other"):
        with pytest.raises(Missing, match=f"^no runs of '{name}' at reduced$"):
            evidence.runs(name)


def test_of_groups_that_lack_seeds_those_remain_that_every_one_of_them_has():
    a, b = (tuple(RunSpec("toy/draw", {"group": g}, seed) for seed in range(5)) for g in "ab")
    once = (RunSpec("toy/draw", {"group": "timed"}, 3),)
    groups = {"a": a, "b": b, "once": once}
    ids = {spec.id for spec in (*a[:2], *b[1:4], *once)}
    few = few_seeds(groups, ids)
    assert few.groups == {"a": a[1:2], "b": b[1:2], "once": once}
    assert str(few) == "1 of 5 seeds"
    begun = few_seeds(groups, {spec.id for spec in a[:2]})
    assert (begun.groups, str(begun)) == ({"a": a[:2], "b": b, "once": once}, "2 of 5 seeds")
    assert few_seeds(groups, {spec.id for specs in groups.values() for spec in specs}) is None
    assert few_seeds(groups, {spec.id for spec in (*a[:2], *b[2:])}) is None
    assert few_seeds({"several of a seed": (*a, *(replace(spec, settings={}) for spec in a))}, {a[0].id}) is None


def test_several_versions_of_a_run_are_kept_the_first_source_s_first(tmp_path):
    first, second = stored(tmp_path / "a", *SPECS[:2]), stored(tmp_path / "b", SPECS[0], value=2.0)
    evidence = Evidence(Layered([first, second]), {"all": SPECS[:2]}, "smoke")
    assert [run.results["value"] for run in evidence.runs("all")] == [1.0, 1.0]
    assert list(evidence.versions) == [SPECS[0].id]
    assert [run.results["value"] for run in evidence.versions[SPECS[0].id]] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("My Paper", "my_paper"),
        ("_hidden", "hidden"),
        ("2nd_try", "nd_try"),
        ("lambda", "lookahead"),
        ("", "lookahead"),
        ("...", "lookahead"),
        ("isgd!", "isgd"),
    ],
)
def test_a_short_name_that_cannot_stand_in_ids_is_refused_with_the_nearest_one(name, suggested):
    for refused in (lambda: check_name(name), lambda: Paper(name, "", "", (), {})):
        with pytest.raises(PaperError, match=f"such as '{suggested}'$"):
            refused()
