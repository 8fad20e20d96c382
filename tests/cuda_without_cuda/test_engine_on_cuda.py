"""Crossbow's task engine on a GPU that is not there: where its tensors lie, and what it waits for."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from fake_cuda import absent_gpu, problem

from reference_impls.crossbow import SMA
from suite.communication.collectives import Local
from suite.model_averaging.engine import Engine, Learners
from suite.training.gradients.backend import AutogradGradients
from suite.training.optimizers import CaffeSGD


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor:UserWarning")
def test_a_worker_issues_every_task_to_its_stream_and_waits_for_it_alone(monkeypatch):
    """One worker, which is the caller: tensors without values are known to its thread only."""
    waited: list[str] = []
    done = lambda device: waited.append(device.type)
    stream = lambda device: SimpleNamespace(synchronize=lambda: done(device), wait_stream=lambda other: None)
    monkeypatch.setattr(torch.cuda, "Stream", stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda made: nullcontext())
    with absent_gpu(monkeypatch):
        case = problem("digits_lenet", channels_last=True)
        monkeypatch.setattr("suite.model_averaging.engine.another", lambda gradients: gradients)  # copied deep
        examples = lambda numbers: (numbers[:, None] + torch.arange(4, device="cuda")) % 8
        learners = Learners(SMA(CaffeSGD(), Local(2)), case.flat.point(), AutogradGradients(case), examples)
        tasks = Engine(learners, workers=1).run(3, torch.tensor(0.1, device="cuda"))
    assert {part.device.type for part in learners.state} == {"cuda"}
    assert waited == ["cuda"] * len(tasks) == ["cuda"] * 15
