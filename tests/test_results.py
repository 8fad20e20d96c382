"""The committed table of results says what the committed runs say: a number moves with its evidence alone."""

from __future__ import annotations

import pytest

from suite.papers.evidence import committed
from suite.papers.registry import homes, papers_of
from suite.report import snapshot
from suite.report.readme import judged_of
from suite.runs.archive import Layered


def table() -> list[dict[str, str]]:
    return snapshot.read((homes()[0] / snapshot.FILE).read_text(encoding="utf-8"))


@pytest.mark.evidence
@pytest.mark.parametrize("paper", papers_of(homes()[0]))
def test_every_value_and_verdict_is_the_committed_one(paper):
    now = snapshot.rows(judged_of([paper], Layered(committed())))
    before = [row for row in table() if row["claim"].startswith(f"{paper}/")]
    assert snapshot.differing(before, now) == []


def test_values_are_compared_as_numbers():
    row = next(row for row in table() if row["low"] and float(row["low"]) < float(row["high"]) < 1e9)
    value, width = float(row["ours"]), float(row["high"]) - float(row["low"])
    beside = lambda by: [row | {"ours": f"{value + by:.10g}"}]
    assert snapshot.differing([row], beside(5e-4 * width)) == []
    assert snapshot.differing([row], beside(5e-3 * width)) == [row["claim"]]
    assert snapshot.moved([row], beside(5e-3 * width)) == {row["claim"]: [row]}
    assert snapshot.moved([row], [beside(5e-3 * width)[0] | {"runs": "others"}]) == {}
    assert snapshot.merged([row], beside(5e-4 * width)) == [row]
