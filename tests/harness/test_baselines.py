"""Baselines as files: where they lie, in which order they stand, and one spoilt session among good ones."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from test_regression import accepted, document

from suite.runs.environment import ROOT
from suite.speed import baselines
from suite.speed.baselines import GateError, accept, baseline, find_baseline, read


@pytest.mark.parametrize(("named", "folder"), [("", ROOT / "ci" / "baselines"), ("elsewhere", Path("elsewhere"))])
def test_baselines_lie_in_the_checkout_unless_a_runner_names_a_folder_of_its_own(
    monkeypatch: pytest.MonkeyPatch, named: str, folder: Path
):
    monkeypatch.setenv("SGD_SUITE_BASELINES", named)
    assert runpy.run_path(baselines.__file__)["FOLDER"] == folder


def test_workloads_stand_in_the_order_of_their_names(tmp_path: Path):
    """A baseline measured anew then differs from the one before where its numbers do."""
    path = accept([document(dict.fromkeys("cab", 0.0), np.random.default_rng(1))], tmp_path)
    assert list(json.loads(path.read_text())["workloads"]) == ["a", "b", "c"]


def test_a_baseline_counts_the_sessions_of_the_workload_that_has_most():
    draw = np.random.default_rng(2)
    made = baseline([document({"a": 0.0, "b": 0.0}, draw), document({"b": 0.0}, draw)])
    assert (len(made["workloads"]["a"]["wall"]), made["sessions"]) == (1, 2)


def test_who_has_no_baseline_is_told_all_classes_that_have_one_in_order(tmp_path: Path):
    with pytest.raises(GateError, match=r"\(there is none\)"):
        find_baseline(tmp_path, "gpu-b")
    for name in "dbeac":
        accept([document({"a": 0.0}, np.random.default_rng(3), machine=name)], tmp_path)
    with pytest.raises(GateError, match=r"\(there are a, b, c, d, e\)"):
        find_baseline(tmp_path, "gpu-b")


@pytest.mark.parametrize("spoilt", [["0.1"], [0.1, math.inf], []], ids=str)
def test_one_spoilt_session_among_good_ones_is_refused(tmp_path: Path, spoilt: list):
    path = tmp_path / "baseline.json"
    path.write_text(accepted({"wall": [[0.1, 0.2], spoilt, [0.3]]}))
    with pytest.raises(GateError, match="'w' has sessions that are no lists of log ratios"):
        read(path)


@pytest.mark.parametrize(
    ("values", "accepted"),
    [
        ([baselines.LARGEST, -baselines.LARGEST], True),
        ([math.nextafter(baselines.LARGEST, math.inf)], False),
        ([math.nextafter(-baselines.LARGEST, -math.inf)], False),
        ([], False),
        ([True], False),
        ([math.nan], False),
    ],
)
def test_log_ratios_are_numbers_of_which_the_largest_is_one(values: list[float], accepted: bool):
    assert baselines._numbers(values, least=-baselines.LARGEST) is accepted
