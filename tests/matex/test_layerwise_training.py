"""What sets synchronous and serial training apart."""

from __future__ import annotations

from paper_figures.matex_agd.experiments.serial_gap import serial_gap
from paper_figures.matex_agd.settings import GAP
from suite.experiment import Context
from suite.spec import RunSpec
from suite.training import numerics as execution
from suite.training.gradients.backend import AutogradGradients


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
