"""What Crossbow's runs add to training: restarts at the drops of the rate, and recomputed batch-norm statistics."""

from __future__ import annotations

import pytest

from reference_impls import crossbow
from suite.execute import Surroundings, execute
from suite.spec import RunSpec
from suite.store import Store
from suite.training_cost import TRAIN

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
    seen, told = [], []
    genuine, tell = crossbow.restart, crossbow.tell

    def spy(config, state):
        seen.append(len(told))
        return genuine(config, state)

    def count(config, state, turn, *rest, **options):
        told.append(turn.t)
        return tell(config, state, turn, *rest, **options)

    monkeypatch.setattr(crossbow, "restart", spy)
    monkeypatch.setattr(crossbow, "tell", count)
    spec = RunSpec("train", {**SETTINGS, "restart": restart})
    report = execute(spec, lambda name: TRAIN, Surroundings(tmp_path / "store"))
    assert report.state == "stored", report
    assert seen == turns
    assert Store(tmp_path / "store").read(spec.id).results["updates"] == 7
