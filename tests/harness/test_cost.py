"""What a training is expected to cost: seconds and bytes by hand, and which runs may share a step."""

from __future__ import annotations

import pytest

from suite.data.catalogue import DATASETS
from suite.models.table import counts
from suite.runner import cost
from suite.spec import RunSpec

LENET = counts("caffe_lenet")


def training(**changes) -> RunSpec:
    settings = {
        "data": {"name": "mnist"},
        "model": {"name": "caffe_lenet"},
        "algorithm": {"name": "sgd"},
        "batch": 4,
        "updates": 1_000,
        "evaluate": {"every": 100},
    }
    return RunSpec("train", settings | changes)


def operations(spec: RunSpec) -> float:
    """At forty billion a second, beside a millisecond and a half of each update."""
    return (cost.seconds(spec) - spec.settings["updates"] * 1.5e-3) * 4e10


def test_a_run_costs_three_passes_of_every_example_and_one_of_every_tested_image():
    assert operations(training()) == pytest.approx(LENET.flops_per_example * (3 * 1_000 * 4 + 11 * 10_000))
    assert operations(training(workers=3)) == pytest.approx(LENET.flops_per_example * (3 * 12_000 + 11 * 10_000))
    tested = {"every": 250, "test_examples": 500, "train_examples": 60, "recompute": 7}
    assert operations(training(evaluate=tested)) == pytest.approx(LENET.flops_per_example * (12_000 + 5 * 567))


def test_a_rule_that_may_stop_a_run_leaves_a_quarter_of_its_updates():
    assert cost.expected_updates(training()) == 1_000
    assert cost.expected_updates(training(stop={"test_error": 0.01})) == 250


def test_memory_is_the_data_ten_vectors_a_worker_and_the_activations_of_a_batch_or_a_test():
    pixels = 28 * 28 * 70_000
    for workers, batch, examples in ((1, 4, 500), (3, 4, 500), (1, 800, 800)):
        expected = 40 * workers * LENET.parameters + 8 * examples * LENET.activations_per_example
        assert cost.memory(training(workers=workers, batch=batch)) == 350_000_000 + pixels + expected


def test_tests_are_of_the_test_split_where_its_labels_are_public():
    assert cost.test_size("mnist") == 10_000
    assert cost.test_size("imagenet") == DATASETS["imagenet"].sizes["validation"] == 50_000


def test_small_batches_of_one_network_share_a_step_on_a_cpu_and_any_on_a_gpu():
    at = {batch: training(batch=batch) for batch in (16, 17)}
    assert cost.pack(at[16], "cpu") is not None
    assert cost.pack(at[17], "cpu") is None
    assert cost.pack(training(batch=6, workers=3), "cpu") is None
    assert cost.pack(at[17], "cuda") is not None
    assert cost.pack(at[16], "cuda") != cost.pack(at[17], "cuda")
    assert cost.pack(training(updates=7), "cpu") == cost.pack(training(), "cpu")


def test_a_network_that_draws_masks_shares_no_step():
    assert counts("caffe_alexnet").has_dropout
    assert cost.pack(training(model={"name": "caffe_alexnet"}), "cuda") is None


def test_a_run_needs_its_data():
    assert cost.data(training()) == ("mnist",)
