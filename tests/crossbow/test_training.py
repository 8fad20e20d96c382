"""What Crossbow's runs add to training: two levels, restarts at the drops of the rate, tests on a part."""

from __future__ import annotations

import pytest
import torch
from torch.func import grad

from reference_impls.crossbow import SMA
from suite.experiment import Context
from suite.runner.cost import TRAIN, seconds
from suite.runner.execute import RunnerConfig, execute
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training.build import assemble
from suite.training.gradients.paths import backend
from suite.training.loop import TrainingRun
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


def test_two_levels_train_as_written_out(tmp_path):
    """Two devices of two learners in float64: alpha 1/2 towards the reference, 1/2 between both and the centre."""
    algorithm = {"name": "crossbow", "devices": 2, "momentum": 0.9}
    settings = {**SETTINGS, "algorithm": algorithm, "workers": 4, "precision": "float64", "updates": 6, "drops": []}
    settings["order"] = {"kind": "shuffled", "share": "pool"}
    spec = RunSpec("train", settings)
    execution = choose(spec, "cpu", 1)
    made = assemble(spec.settings, spec.seed, execution, None)
    session = TrainingRun(spec, Context(tmp_path, execution), made, backend("looped", made.problem))
    written = assemble(spec.settings, spec.seed, execution, None)
    gradient = grad(lambda x, batch: written.problem.loss(x, written.problem.b0(), batch)[0])
    w, v = made.x0.repeat(4, 1), torch.zeros(4, len(made.x0), dtype=torch.float64)
    z = z_prev = made.x0.clone()
    for t, turn in zip(range(6), session.turns(), strict=False):
        session.update(turn)
        examples = written.order.indices(torch.full((4,), t), torch.arange(4))
        before = w.clone()
        for j in range(4):
            v[j] = 0.9 * v[j] + 0.05 * gradient(before[j], written.problem.fetch(examples[j]))
            w[j] = before[j] - v[j]
        moved = z + 0.9 * (z - z_prev)
        for r in (0, 2):
            within, between = (before[r + 1] - before[r]) / 2, (before[r] - z) / 2
            w[r] += within - between
            w[r + 1] -= within
            moved = moved + between
        z, z_prev = moved, z
    torch.testing.assert_close(session.state.replicas, w, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(session.state.centre, z, rtol=1e-10, atol=1e-12)
    assert (w[0] - w[2]).abs().max() > 1e-4


def test_a_test_may_read_a_fixed_part_of_the_images(tmp_path):
    spec = RunSpec("train", {**SETTINGS, "updates": 0, "evaluate": {"every": 1, "test_examples": 60}})
    assert execute(spec, lambda name: TRAIN, RunnerConfig(tmp_path / "store")).state == "stored"
    error = Store(tmp_path / "store").read(spec.id).results["test_error"]
    made = assemble(spec.settings, spec.seed, choose(spec, "cpu", 1), None)
    inputs, targets = made.test_inputs, made.test_targets
    assert error == made.problem.evaluate(made.x0, made.problem.b0(), inputs[:60], targets[:60])[1]
    assert error != made.problem.evaluate(made.x0, made.problem.b0(), inputs, targets)[1]
    whole = RunSpec("train", {**SETTINGS, "evaluate": {"every": 7}})
    part = RunSpec("train", {**SETTINGS, "evaluate": {"every": 7, "test_examples": 60}})
    assert seconds(part) < seconds(whole)
