"""What a training is expected to cost: seconds and bytes by hand, and which runs may share a step."""

from __future__ import annotations

import pytest

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


def test_a_run_costs_the_gradients_of_its_images_its_steps_and_its_tests():
    image, step = cost.GRADIENT["caffe_lenet"]
    each = step + cost.OVERHEAD
    test = cost.TEST["caffe_lenet"]
    assert cost.seconds(training()) == pytest.approx(4_000 * image + 1_000 * each + 110_000 * test)
    three = 12_000 * image + 3_000 * step + 1_000 * cost.OVERHEAD + 110_000 * test
    assert cost.seconds(training(workers=3)) == pytest.approx(three)
    tested = {"every": 250, "test_examples": 500, "train_examples": 60, "recompute": 7}
    shorter = 4_000 * image + 1_000 * each + 5 * 567 * test
    assert cost.seconds(training(evaluate=tested)) == pytest.approx(shorter)


def test_options_of_a_network_cost_what_they_multiply():
    small, large = (training(model={"name": "caffe_lenet", **options}) for options in ({}, {"classes": 1000}))
    more = counts("caffe_lenet", classes=1000).flops_per_example / LENET.flops_per_example
    step = 1_000 * (cost.GRADIENT["caffe_lenet"][1] + cost.OVERHEAD)
    assert cost.seconds(large) - step == pytest.approx(more * (cost.seconds(small) - step))
    assert cost.memory(large) > cost.memory(small)


@pytest.mark.parametrize("network", sorted(cost.GRADIENT))
def test_measured_seconds_are_of_the_size_that_operations_say(network: str):
    """Between a fifth of a core's usual speed and eight times it: no slip of a power of ten."""
    by_operations = 3 * counts(network).flops_per_example / cost.FLOPS_PER_SECOND
    assert 1 / 8 < cost.image_seconds(network) / by_operations < 5


def test_memory_is_the_data_ten_vectors_a_worker_and_the_activations_of_a_batch_or_a_test():
    pixels = 28 * 28 * 70_000
    for workers, batch, examples in ((1, 4, 500), (3, 4, 500), (1, 800, 800)):
        expected = 40 * workers * LENET.parameters + 8 * examples * LENET.activations_per_example
        assert cost.memory(training(workers=workers, batch=batch)) == 350_000_000 + pixels + expected
