"""Searches and measurements of gradient noise, which have drivers of their own, on a GPU that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fake_cuda import PATHS, moved

from paper_figures.inverse_law.experiments import sweep
from suite.data.order import WithReplacement
from suite.data.transforms import Transform
from suite.experiment import Context
from suite.models.registry import construct
from suite.spec import RunSpec
from suite.training.numerics import choose

pytestmark = pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor:UserWarning")

SETTINGS = {
    "data": {"name": "digits", "labels": "digits", "transform": "standardise-global"},
    "model": {"name": "digits_lenet"},
    "descent": {"rule": "torch"},
    "rate": 0.05,
    "batch": 4,
    "share": 0.2,
    "sample": 100,
    "growth": 0.0,
    "limit": 10,
    "monitors": {"training": [0.5]},
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("path", PATHS)
def test_a_search_steps_where_its_pictures_lie(monkeypatch, path):
    fitted = Transform(torch.zeros(1, 1, 1), torch.ones(()))  # on the CPU, like statistics of stored pictures
    monkeypatch.setattr(sweep.transforms, "fit", lambda rule, inputs, size: fitted)
    monkeypatch.setattr(sweep, "make_network", lambda model, seed, device, dtype: moved(construct(model["name"])))
    monkeypatch.setattr(sweep, "backend_of", lambda execution, problem: PATHS[path](problem))
    spec = RunSpec("inverse_law/sweep", SETTINGS)
    trainer = sweep.Trainer(spec, Context(Path(), choose(spec, "cuda", 1)))
    state, _ = trainer.advance(trainer.start(), 0, 2)
    assert trainer.algorithm.model(state).device.type == "cuda"
    for inputs, targets in trainer.samples.values():
        assert inputs.device.type == targets.device.type == "cuda"


@pytest.mark.usefixtures("gpu")
def test_batches_drawn_with_replacement_lie_where_their_numbers_do():
    drawn = WithReplacement(50, 4, 0).indices(torch.zeros(2, dtype=torch.int64, device="cuda"))
    assert drawn.device.type == "cuda"
