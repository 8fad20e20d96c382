"""Artifacts and their evidence: several versions of a run, and names that no selector could mean are refused."""

from __future__ import annotations

import pytest

from suite.papers.artifact import Paper, PaperError, check_name
from suite.papers.measurement import few_seeds
from suite.spec import RunSpec


def test_of_groups_that_lack_seeds_those_remain_that_every_one_of_them_has():
    a, b = (tuple(RunSpec("toy/draw", {"group": g}, seed) for seed in range(5)) for g in "ab")
    once = (RunSpec("toy/draw", {"group": "timed"}, 3),)
    groups = {"a": a, "b": b, "once": once}
    ids = {spec.id for spec in (*a[:2], *b[1:4], *once)}
    assert few_seeds(groups, ids) == ({"a": a[1:2], "b": b[1:2], "once": once}, "1 of 5 seeds")
    assert few_seeds(groups, {spec.id for spec in a[:2]}) == ({"a": a[:2], "b": b, "once": once}, "2 of 5 seeds")
    assert few_seeds(groups, {spec.id for specs in groups.values() for spec in specs}) is None
    assert few_seeds(groups, {spec.id for spec in (*a[:2], *b[2:])}) is None
    others = (RunSpec("toy/draw", {}, spec.seed) for spec in a)
    assert few_seeds({"several of a seed": (*a, *others)}, {a[0].id}) is None


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("My Paper", "my_paper"),
        ("_hidden", "hidden"),
        ("2nd_try", "nd_try"),
        ("lambda", "lookahead"),
        ("", "lookahead"),
        ("isgd!", "isgd"),
    ],
)
def test_a_short_name_that_cannot_stand_in_ids_is_refused_with_the_nearest_one(name, suggested):
    for refused in (lambda: check_name(name), lambda: Paper(name, "", "", (), {})):
        with pytest.raises(PaperError, match=f"such as '{suggested}'$"):
            refused()
