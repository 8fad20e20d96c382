"""The measuring experiments end to end on a small network: what they count, not how fast this machine is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paper_figures import crossbow
from suite.model_averaging.engine import Learners
from suite.runner import execute as execution
from suite.runner.execute import RunnerConfig, execute
from suite.runs.comparison import identical
from suite.runs.store import Store
from suite.spec import RunSpec


@pytest.fixture(scope="module")
def around(tmp_path_factory) -> RunnerConfig:
    return RunnerConfig(tmp_path_factory.mktemp("throughput") / "store")


def stored(around: RunnerConfig, experiment: str, settings: dict):
    spec = RunSpec(experiment, settings)
    report = execute(spec, crossbow.EXPERIMENTS.__getitem__, around)
    assert report.state == "stored", report
    return Store(around.store).read(spec.id)


def test_throughput_is_ratios_of_sides_measured_in_turns(around):
    settings = {"model": "digits_lenet", "batch": 4, "learners": (1, 2), "turns": 1, "repeats": 3, "threshold": 0.1}
    run = stored(around, "crossbow/throughput", settings)
    table = run.curve("seconds")
    native = set() if "refused_native" in run.results else {"native", "native-batch"}
    assert set(table["side"]) == {"looped", "vectorised", "batch"} | native
    assert len(table) == (3 + len(native)) * 2 * 3
    assert (table["seconds"] > 0).all()
    assert 1 <= run.results["tuned_learners"] <= 2
    assert run.results["refused_captured"] == "CUDA graphs need CUDA, and the network lies on cpu"
    first, path = run.results["path_1"], run.results["path_2"]
    of = lambda side, k: table[(table["side"] == side) & (table["learners"] == k)]["seconds"].tolist()
    ratios = [2 * one / two for one, two in zip(of(first, 1), of(path, 2), strict=True)]
    assert run.results["over_one_2"] == pytest.approx(ratios)


def test_equal_devices_are_tuned_apart_each_on_a_core_of_its_own(around):
    """Readings begin with one learner on both, and every tuner ends at a number that it measured."""
    settings = {"model": "digits_lenet", "batch": 4, "most": 2, "turns": 1, "repeats": 2, "threshold": 0.05}
    if len(os.sched_getaffinity(0)) > 1:
        table = stored(around, "crossbow/apart", {**settings, "devices": 2}).curve("readings")
        assert sorted(set(zip(table["device"], table["repeat"], strict=True))) == [(0, 1), (0, 2), (1, 1), (1, 2)]
        for _, walk in table.groupby(["device", "repeat"]):
            assert walk["learners"].iloc[0] == 1
            assert walk["settled"].iloc[0] in set(walk["learners"])
    lacking = stored(around, "crossbow/apart", {**settings, "devices": 1000})
    assert "1000 devices need as many cores" in lacking.results["skipped"]


def test_memory_is_the_peak_of_what_is_allocated(around):
    run = stored(around, "crossbow/memory", {"model": "digits_lenet", "batches": (8, 16), "learners": (1, 2)})
    table = run.curve("memory").set_index(["shared", "batch", "learners"])["bytes"]
    state = run.results["state"]
    assert state == 3 * 4 * run.results["parameters"]
    step = table[True, 8, 1] - state
    assert step > 0
    assert run.results["extra_shared"] == [table[True, batch, 2] - table[True, batch, 1] for batch in (8, 16)]
    assert state / 3 < run.results["extra_shared"][0] < state + step / 2, (
        "sharing activations, a learner costs its state"
    )
    assert run.results["extra_own"] == [table[False, batch, 2] - table[False, batch, 1] for batch in (8, 16)]
    assert run.results["extra_own"][0] > state + step
    assert run.results["extra_own"][1] > 1.5 * run.results["extra_own"][0], "twice the images, twice the activations"
    assert table[True, 16, 1] > table[True, 8, 1]


FOLLOWED = {
    "data": {"name": "digits", "transform": "scale", "size": 28},
    "model": {"name": "digits_lenet"},
    "descent": {"rule": "caffe", "momentum": 0.9},
    "algorithm": {"name": "crossbow", "alpha": 0.25},
    "order": {"kind": "shuffled"},
    "rate": 0.01,
    "batch": 8,
    "images": 32,
    "epochs": 2,
    "learners": [[0, 1], [1, 2]],
}


def test_followed_replicas_go_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Stopped after every iteration, of which none is computed twice: learners join in between."""
    spec = RunSpec("crossbow/followed", FOLLOWED)
    whole = RunnerConfig(tmp_path / "whole")
    assert execute(spec, crossbow.EXPERIMENTS.__getitem__, whole).state == "stored"
    steps, step = [], Learners.step
    monkeypatch.setattr(Learners, "step", lambda self, rate: steps.append(self.t) or step(self, rate))
    states = []
    while not states or states[-1] == "late":
        begun = len(steps)
        monkeypatch.setattr(execution, "asked_to_stop", lambda: len(steps) > begun)  # noqa: B023
        states.append(execute(spec, crossbow.EXPERIMENTS.__getitem__, RunnerConfig(tmp_path / "parts")).state)
    assert (states.count("late"), states[-1]) == (6, "stored")
    assert steps == list(range(6))
    assert identical(Store(tmp_path / "whole").read(spec.id), Store(tmp_path / "parts").read(spec.id))
