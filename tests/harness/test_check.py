"""What ``check`` writes for programs, whom they leave out, and the codes it ends with."""

from __future__ import annotations

import json
import math

from suite.claims.estimate import Estimate
from suite.claims.judge import Claim, Verdict
from suite.commands import check
from suite.runs.comparison import Survey

CLAIM = Claim("toy/fig1/gain", "it gains", "1", "within", "smoke", "gpu", "a point", (25.0,), "%", (1.0,))


def test_what_json_cannot_hold_is_written_as_text():
    ours = Estimate((0.5, math.nan), (-math.inf, 0.25), (math.inf, 1.0), n=3, runs=("a",))
    found = check.row(Verdict(CLAIM, "inconclusive", "wide", ours, "smoke"))
    spans = {name: found["ours"][name] for name in ("values", "low", "high")}
    assert spans == {"values": [0.5, "nan"], "low": ["-inf", 0.25], "high": ["inf", 1.0]}
    assert (found["ours"]["n"], found["ours"]["runs"], found["proxy"]) == (3, ["a"], None)
    json.dumps(found, allow_nan=False)


def test_a_contested_run_is_red_where_no_claim_rests_on_it(monkeypatch, capsys):
    contested = Survey(kinds={"r": "contested"}, contested={"r": "run r"})
    monkeypatch.setattr(check, "judge_selection", lambda *selection: [])
    monkeypatch.setattr(check, "held_twice", lambda *selection: contested)
    judged = {"as_json": True, "junit_path": None, "verbose": False}
    assert check.check_selection([], None, {}, [], **judged) == 1
    assert "CONTESTED run r" in capsys.readouterr().err
