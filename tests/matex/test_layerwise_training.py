"""Layer-wise exchange as a setting of a training run: the bits of synchronous training, resumed as well."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from bodies import Kept

from paper_figures.matex_agd.experiments.serial_gap import serial_gap
from paper_figures.matex_agd.settings import DIGITS, GAP
from suite.experiment import Context, OutOfTime
from suite.spec import RunSpec
from suite.training import loop as training
from suite.training import numerics as execution
from suite.training.gradients.looped import AutogradGradients
from suite.training.loop import TrainingRun, train

EXECUTION = execution.choose(RunSpec("train"), "cpu", 1)


def spec_of(bucket_bytes=0, **config):
    settings = {
        **DIGITS,
        "algorithm": {"name": "matex_agd", **config},
        "workers": 4,
        "batch": 4,
        "order": {"kind": "partitioned"},
        "updates": 4,
        "evaluate": {"every": 2},
        "bucket_bytes": bucket_bytes,
    }
    return RunSpec("train", settings, 0)


def results(outcome):
    """All but the seconds it took."""
    return {name: value for name, value in outcome.results.items() if name != "seconds"}


@pytest.fixture(scope="module")
def synchronous(tmp_path_factory):
    return results(train(spec_of(), Context(tmp_path_factory.mktemp("run"), EXECUTION)))


@pytest.mark.parametrize("order", ["all", "backward", "completed"])
@pytest.mark.parametrize("bucket_bytes", [0, 20_000])
def test_layer_wise_ends_in_the_bits_of_synchronous(tmp_path, monkeypatch, synchronous, order, bucket_bytes):
    sums = []

    class Watched(TrainingRun):
        def __init__(self, *given):
            super().__init__(*given)
            self.algorithm = replace(self.algorithm, collective=Kept(self.algorithm.collective, sums=sums))

    monkeypatch.setattr(training, "TrainingRun", Watched)
    found = results(train(spec_of(bucket_bytes, segmented=True, order=order), Context(tmp_path, EXECUTION)))
    assert found == synchronous
    parameters, tensors = found["parameters"], 8  # two convolutions and two layers, weights and biases
    assert sum(total.wait().numel() for total in sums) == 4 * parameters
    assert len(sums) == 4 * tensors if bucket_bytes == 0 else 4 < len(sums) < 4 * tensors


def test_sums_under_way_survive_a_checkpoint(tmp_path):
    spec = spec_of(segmented=True, order="backward", delay=2)
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
