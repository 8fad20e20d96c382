"""Runs are told to a tracker as they are stored, and offline files hold their curves and results."""

from __future__ import annotations

import pandas as pd
import pytest

from suite.runner import trackers
from suite.runner.trackers import numbers, scalars, tensorboard, wandb
from suite.runs.run import Outcome, Run, encode
from suite.spec import RunSpec


@pytest.fixture
def run() -> Run:
    curves = {"evaluations": pd.DataFrame({"update": [2, 4], "test_error": [0.5, 0.25]})}
    spec = RunSpec("fake/train", {"rate": 0.1}, 0)
    return Run(spec.id, encode(spec, {}, Outcome("finished", {"test_error": 0.25, "why": "none"}, curves)))


def test_every_number_of_a_curve_is_told_at_its_update(run):
    assert list(scalars(run)) == [("evaluations/test_error", 2, 0.5), ("evaluations/test_error", 4, 0.25)]
    assert numbers(run) == {"test_error": 0.25}


def test_tensorboard_reads_the_curve_back(run, tmp_path):
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    tensorboard(run, "fake/fig1", tmp_path / "tracked")
    found = reading.EventAccumulator(str(tmp_path / "tracked" / "fake/fig1" / run.id)).Reload()
    assert [(each.step, each.value) for each in found.Scalars("evaluations/test_error")] == [(2, 0.5), (4, 0.25)]


def test_weights_and_biases_keeps_files_offline(run, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    wandb(run, "fake/fig1", tmp_path / "tracked")
    assert list((tmp_path / "tracked").rglob("*.wandb"))


def test_a_package_that_is_missing_is_said_before_any_run(monkeypatch):
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs the Python package wandb.*pip install sgd-scaling-suite\[track\]"):
        trackers.tracker_called("wandb")
