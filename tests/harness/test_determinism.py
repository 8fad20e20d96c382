"""Kernels that give the same bits: asked for where they exist, named where they do not; seen without a GPU."""

from __future__ import annotations

import json
import os
import warnings

import pytest
import torch

from suite.experiment import Experiment
from suite.runner import execute
from suite.runs.run import Outcome
from suite.spec import RunSpec
from suite.training.numerics import same_bits


def switches() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


@pytest.fixture(autouse=True)
def workspace(monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)


def unordered_kernel() -> None:
    """What a kernel without a deterministic form does before it runs."""
    x = torch.rand(1, 1, 4, 4, requires_grad=True)
    pooled, indices = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    torch.nn.functional.max_unpool2d(pooled, indices, 2)


def test_on_a_gpu_deterministic_kernels_are_asked_for_others_named_and_the_switches_put_back():
    before = switches()
    with same_bits("cuda") as named:
        assert switches() == (True, True)
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
        assert named == set()
        unordered_kernel()
        unordered_kernel()
        with pytest.warns(UserWarning, match="of another kind"):
            warnings.warn("of another kind", stacklevel=1)
    assert len(named) == 1
    assert "max_unpool" in named.pop()
    with pytest.raises(KeyError), same_bits("cuda"):
        raise KeyError
    assert switches() == before == (False, False)


def test_on_a_cpu_nothing_is_set():
    with same_bits("cpu") as named:
        assert switches() == (False, False)
        unordered_kernel()
    assert named == set()
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ


def test_a_run_says_which_kernels_promised_no_bits(tmp_path, monkeypatch):
    seen = []

    def body(spec, context):
        seen.append(switches())
        if spec.settings["pools"]:
            unordered_kernel()
        return Outcome("finished", {})

    monkeypatch.setattr(execute, "same_bits", lambda device: same_bits("cuda"))
    experiment = Experiment(lambda: body, lambda spec: 1.0)
    specs = tuple(RunSpec("toy", {"pools": pools}) for pools in (True, False))
    for spec in specs:
        execute.execute(spec, lambda name: experiment, execute.RunnerConfig(tmp_path))
        where = json.loads((tmp_path / "runs" / spec.id / "environment.json").read_text())
        assert ("not_deterministic" in where) is spec.settings["pools"]
    assert seen == [(True, True)] * 2
