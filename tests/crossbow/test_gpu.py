"""What only a GPU can show: learners on streams of their own, each of its paths measured, memory per learner."""

from __future__ import annotations

import pytest
import torch
from crossbow_worlds import assignment

from paper_figures import crossbow
from paper_figures.crossbow.experiments.timing import Bench
from suite.model_averaging.engine import Engine
from suite.runner.execute import RunnerConfig, execute
from suite.runs.run import Run
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training.build import random_classification
from suite.training.gradients.paths import backend, refusals

pytestmark = pytest.mark.gpu


def measured(tmp_path, experiment: str, settings: dict) -> Run:
    spec = RunSpec(experiment, settings)
    report = execute(spec, crossbow.EXPERIMENTS.__getitem__, RunnerConfig(tmp_path / "store", device="cuda"))
    assert report.state == "stored", report
    return Store(tmp_path / "store").read(spec.id)


def pictures():
    execution = {"device": "cuda", "precision": "float32"}
    return random_classification({"name": "digits_lenet"}, 1024, execution, channels_last=True)


def test_a_stream_for_each_learner_trains_as_one_after_another():
    """Four learners in a captured graph and in a loop: float32 twins over ten iterations, learners joining midway."""
    problem = pictures()
    assert refusals(problem).keys() == {"native"}
    sides = {path: Bench(backend(path, problem), 2, 16, "cuda") for path in ("looped", "captured")}
    for bench in sides.values():
        bench.turns(5)
        bench.learners.resize(4)
        bench.turns(5)
    looped, captured = (sides[path].learners for path in ("looped", "captured"))
    torch.testing.assert_close(captured.centre, looped.centre, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(captured.state.replicas, looped.state.replicas, rtol=1e-5, atol=1e-6)


def test_tasks_on_streams_train_as_their_recorded_assignment():
    """Four learners on two streams, first come first served, against one after the other on the same batches."""
    engine, rule = (Bench(backend("looped", pictures()), 4, 16, "cuda") for _ in "ab")
    for numbers in assignment(Engine(engine.learners, workers=2).run(6, engine.rate), 4):
        rule.learners.step(rule.rate, numbers)
    torch.testing.assert_close(engine.learners.centre, rule.learners.centre, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(engine.learners.state.replicas, rule.learners.state.replicas, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_learners_take_every_path_of_a_gpu_and_the_tuner_chooses_among_them(tmp_path):
    """What the throughputs are is for the claims of Figs. 12 and 14 to say; here each is there and compared."""
    settings = {"model": "crossbow_resnet32", "batch": 64, "learners": (1, 2, 3, 4, 5, 6)}
    results = measured(
        tmp_path, "crossbow/throughput", {**settings, "turns": 8, "repeats": 5, "threshold": 0.05}
    ).results
    paths = {"looped", "vectorised", "captured"}
    assert {name for name in results if name.startswith("refused_")} == {"refused_native"}
    for k in settings["learners"]:
        assert results[f"path_{k}"] in paths
        assert len(results[f"over_one_{k}"]) == len(results[f"captured_over_looped_{k}"]) == 5
        assert min(results[f"over_one_{k}"]) > 0
    assert results["over_one_1"] == [1.0] * 5
    assert results["tuned_learners"] in settings["learners"]


def test_memory_grows_in_proportion_unless_it_is_shared(tmp_path):
    run = measured(
        tmp_path, "crossbow/memory", {"model": "crossbow_resnet32", "batches": (256,), "learners": (1, 2, 4)}
    )
    table = run.curve("memory").set_index(["shared", "learners"])["bytes"]
    apart, shared = table[False, 4] / table[False, 1], table[True, 4] / table[True, 1]
    assert 2.5 < apart < 5  # 2.93 on an H100: part of what one learner takes is the pictures
    assert shared < apart / 2
