"""Delayed exchange in a training run that is resumed, and what sets synchronous and serial training apart."""

from __future__ import annotations

import time

import pytest

from paper_figures.matex_agd.experiments.serial_gap import serial_gap
from paper_figures.matex_agd.settings import DIGITS, GAP
from suite.experiment import Context, OutOfTime
from suite.spec import RunSpec
from suite.training import numerics as execution
from suite.training.gradients.backend import AutogradGradients
from suite.training.loop import train

EXECUTION = execution.choose(RunSpec("train"), "cpu", 1)


def spec_of(**config):
    settings = {
        **DIGITS,
        "algorithm": {"name": "matex_agd", **config},
        "workers": 4,
        "batch": 4,
        "order": {"kind": "partitioned"},
        "updates": 4,
        "evaluate": {"every": 2},
    }
    return RunSpec("train", settings, 0)


def results(outcome):
    """All but the seconds it took."""
    return {name: value for name, value in outcome.results.items() if name != "seconds"}


def test_sums_under_way_survive_a_checkpoint(tmp_path):
    spec = spec_of(delay=2)
    whole = train(spec, Context(tmp_path / "whole", EXECUTION))
    folder = tmp_path / "parts"
    folder.mkdir()
    with pytest.raises(OutOfTime):
        train(spec, Context(folder, EXECUTION, deadline=time.monotonic() - 1))
    assert results(train(spec, Context(folder, EXECUTION))) == results(whole)


def test_rounding_sets_synchronous_and_serial_training_apart_by_next_to_nothing(tmp_path, monkeypatch):
    """The arms of the doubt about Table 1: the same batches, hence the same losses but for float32.

    On some processors four gradients sum up to the bits of one.
    """
    batches = []
    compute = AutogradGradients.tensors
    monkeypatch.setattr(
        AutogradGradients, "tensors", lambda self, *at: batches.append(len(at[-1][1])) or compute(self, *at)
    )
    spec = RunSpec("matex_agd/serial_gap", {**GAP.settings, "seeds": 1, "updates": 4, "every": 1})
    table = serial_gap(spec, Context(tmp_path, execution.choose(spec, "cpu", 1))).curves["gap"]
    loss = table.pivot_table(index="update", columns="arm", values="loss")
    assert len(loss) == 5
    rounding = (loss["split"] / loss["serial"] - 1).abs()
    assert rounding.max() < 1e-5, "four gradients were computed and summed in float32"
    batch = spec.settings["batch"]
    assert batches == [batch] * 4 + [batch // 4] * 32, "one gradient an update, then four by either kind of workers"
    assert loss["partitioned"][0] == loss["serial"][0], "the same weights to begin with"
    assert (loss["partitioned"][1:] / loss["serial"][1:] - 1).abs().min() > 1e-3, "other batches"
