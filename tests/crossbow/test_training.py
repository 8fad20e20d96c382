"""What Crossbow's runs add to training: two levels, restarts at the drops of the rate, tests on a part."""

from __future__ import annotations

import pytest

from reference_impls.crossbow import SMA
from suite.runner.cost import TRAIN, seconds
from suite.runner.execute import RunnerConfig, execute
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training.build import assemble
from suite.training.evaluation import score
from suite.training.numerics import choose

SETTINGS = {
    "data": {"name": "digits", "transform": "scale", "size": 28},
    "model": {"name": "digits_lenet"},
    "algorithm": {"name": "crossbow", "alpha": 0.25},
    "descent": {"rule": "caffe", "momentum": 0.9},
    "rate": 0.05,
    "drops": [[2, 0.1], [5, 0.01]],
    "batch": 4,
    "workers": 2,
    "updates": 7,
    "evaluate": {"every": 7},
}


@pytest.mark.parametrize(("restart", "turns"), [(True, [2, 5]), (False, [])])
def test_restarts_at_every_drop_if_asked(tmp_path, monkeypatch, restart, turns):
    seen, made = [], []
    genuine, update = SMA.restart, SMA.update

    def spy(self, state):
        seen.append(len(made))
        return genuine(self, state)

    def count(self, state, turn, *rest):
        made.append(turn.t)
        return update(self, state, turn, *rest)

    monkeypatch.setattr(SMA, "restart", spy)
    monkeypatch.setattr(SMA, "update", count)
    spec = RunSpec("train", {**SETTINGS, "restart": restart})
    report = execute(spec, lambda name: TRAIN, RunnerConfig(tmp_path / "store"))
    assert report.state == "stored", report
    assert seen == turns
    assert Store(tmp_path / "store").read(spec.id).results["updates"] == 7


def test_a_test_may_read_a_fixed_part_of_the_images(tmp_path):
    spec = RunSpec("train", {**SETTINGS, "updates": 0, "evaluate": {"every": 1, "test_examples": 60}})
    assert execute(spec, lambda name: TRAIN, RunnerConfig(tmp_path / "store")).state == "stored"
    error = Store(tmp_path / "store").read(spec.id).results["test_error"]
    made = assemble(spec.settings, spec.seed, choose(spec, "cpu", 1), None)
    inputs, targets = made.test_inputs, made.test_targets
    assert error == score(made.problem, made.x0, made.problem.b0(), inputs[:60], targets[:60])[1]
    assert error != score(made.problem, made.x0, made.problem.b0(), inputs, targets)[1]
    whole = RunSpec("train", {**SETTINGS, "evaluate": {"every": 7}})
    part = RunSpec("train", {**SETTINGS, "evaluate": {"every": 7, "test_examples": 60}})
    assert seconds(part) < seconds(whole)
