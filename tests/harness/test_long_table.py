"""Runs as one table that any tool reads."""

from __future__ import annotations

import pandas as pd

from suite.own.results import tidy
from suite.runs.run import Outcome, encode, verified
from suite.spec import RunSpec


def test_every_number_of_a_run_is_a_row():
    spec = RunSpec("toy/draw", {"a": 1}, 3)
    curve = pd.DataFrame({"update": [0, 1], "rule": ["x", "y"]})
    where = {"source": "s", "device": {"device": "cpu"}}
    results = {"error": 0.5, "shown": [1, 2], "good": True}
    run = verified(spec.id, encode(spec, where, Outcome("finished", results, {"c": curve})))
    found = tidy([run])
    assert set(found["run"]) == {spec.id}
    assert (set(found["seed"]), set(found["settings"]), set(found["device"])) == ({3}, {'{"a":1}'}, {"cpu"})
    rows = {(r.table, r.row, r.name): (r.value, r.text) for r in found.itertuples()}
    assert rows["results", 0, "error"][0] == 0.5
    assert rows["results", 0, "good"][0] == 1.0
    assert rows["results", 0, "shown"][1] == "[1, 2]"
    assert rows["c", 1, "update"][0] == 1.0
    assert rows["c", 1, "rule"][1] == "y"
    assert len(rows) == 3 + 4
