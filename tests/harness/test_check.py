"""What ``check`` writes for programs, whom they leave out, and the codes it ends with."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from suite.claims.estimate import Estimate, exact
from suite.claims.judge import Claim, Verdict
from suite.commands import check
from suite.runs.archive import Layered
from suite.runs.contest import Survey

CLAIM = Claim("toy/fig1/gain", "it gains", "1", "within", "smoke", "gpu", "a point", (25.0,), "%", (1.0,))
RED = Verdict(CLAIM, "not reproduced", "zu groß", exact(40.0), "smoke", red=True)
GREEN = Verdict(CLAIM, "reproduced", "inside", exact(25.0), "smoke")
NOTHING = Layered([])


def test_what_json_cannot_hold_is_written_as_text():
    ours = Estimate((0.5, math.nan), (-math.inf, 0.25), (math.inf, 1.0), n=3, runs=("a",))
    found = check.row(Verdict(CLAIM, "inconclusive", "wide", ours, "smoke"))
    spans = {name: found["ours"][name] for name in ("values", "low", "high")}
    assert spans == {"values": [0.5, "nan"], "low": ["-inf", 0.25], "high": ["inf", 1.0]}
    assert (found["ours"]["n"], found["ours"]["runs"], found["proxy"]) == (3, ["a"], None)
    json.dumps(found, allow_nan=False)


def test_junit_has_a_failure_for_each_red_claim_and_a_skip_for_each_that_was_not_run(tmp_path: Path):
    """What passed, and what failed and is explained, has neither."""
    explained = Verdict(CLAIM, "not reproduced", "as found", exact(40.0), "smoke")
    unread = Verdict(CLAIM, "not run", "nothing is stored")
    check.junit([RED, GREEN, explained, unread], tmp_path / "claims.xml")
    suite = ElementTree.parse(tmp_path / "claims.xml").getroot()
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["4", "1", "1"]
    assert [[(said.tag, said.get("message")) for said in case] for case in suite] == [
        [("failure", "not reproduced")],
        [],
        [],
        [("skipped", "nothing is stored")],
    ]


def checked(monkeypatch: pytest.MonkeyPatch, *found: Verdict) -> int:
    twice = Survey({"a" * 20: "confirmed"})
    monkeypatch.setattr(check, "judge_selection", lambda *_: list(found))
    monkeypatch.setattr(check, "held_twice", lambda *_: twice)
    return check.check_selection([], None, NOTHING, (), as_json=True, junit_path=None, verbose=False)


def test_one_red_claim_makes_a_check_red_and_runs_held_twice_are_told_beside(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert [checked(monkeypatch, *found) for found in ((GREEN, RED), (GREEN,), ())] == [1, 0, 0]
    told = capsys.readouterr()
    assert told.err == "1 runs are held in several versions: 1 confirmed; the first source decides\n" * 3
