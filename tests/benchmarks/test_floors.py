"""Limits by hand: the slower of arithmetic and memory bounds an update."""

from __future__ import annotations

import pytest
import torch

from benchmarks import floors as measured
from benchmarks.floors import COPIES, floors
from benchmarks.ours import FLOAT, calls, gradient
from benchmarks.workloads import LEARNERS, WORKLOADS
from suite.models.table import counts
from suite.report.speed import attained

FLOOR = {"flops_per_second": 100.0, "bytes_per_second": 10.0, "copies": [[50, 40.0], [200, 20.0], [1000, 10.0]]}


def workload(flops, moved, seconds):
    return {"flops": flops, "bytes": moved, "sides": {"ours": {"seconds": seconds, "threads": 1}}}


def test_the_limit_is_the_slower_of_operations_and_bytes():
    # 1000 FLOP at 100 FLOP/s take 10 seconds; 100 bytes at 20 bytes/s take only 5
    assert attained(workload(1000.0, 100.0, [40.0, 20.0, 10.0]), "ours", {"1": FLOOR}) == (0.5, "products")
    assert attained(workload(100.0, 1000.0, [200.0]), "ours", {"1": FLOOR}) == (0.5, "copies")


def test_gradients_at_one_point_are_one_batch():
    hard = next(w for w in WORKLOADS if w.name == f"full/CIFAR-10, {LEARNERS} learners, mu=4, hardsync")
    assert calls(hard) == gradient("caffe_cifar_full", 4 * LEARNERS).calls
    assert calls(hard) < LEARNERS * gradient("caffe_cifar_full", 4).calls


@pytest.mark.compiler
def test_no_product_of_the_library_beats_a_loop_of_multiply_adds():
    """By far: a product of this size reaches 80% or more of it, and a loop that was left out would be thousands."""
    core = measured.core_flops()
    a, b, out = (torch.ones(256, 256) for _ in range(3))
    product = 2 * 256**3 / measured.best(lambda: torch.mm(a, b, out=out), "cpu", 1)
    assert 0.5 * product < core < 20 * product


def test_less_than_the_processors_limit_takes_fewer_multiplications():
    """1,000 operations at 500 a second take 2 seconds, whatever the library's products at those shapes take."""
    work = {**workload(1000.0, 1.0, [1.6]), "products": {"1": 30.0}}
    found = attained(work, "ours", {"1": {**FLOOR, "processor_flops_per_second": 500.0}})
    assert found == (1.25, "products")


def test_floors_take_the_best_product_and_every_copy(monkeypatch):
    times = iter([1e-3, 4e-3, 100.0, *(2.0**-n for n in range(len(COPIES))), 7e-7])
    monkeypatch.setattr(measured, "core_flops", lambda: 50.0)
    monkeypatch.setattr(measured, "best", lambda *_: next(times))
    found = floors("cpu", 2)
    assert found["processor_flops_per_second"] == 100.0
    assert found["flops_per_second"] == pytest.approx(max(2 * 512**3 / 1e-3, 2 * 1024**3 / 4e-3))
    assert found["copies"] == [[size, size * 2.0**n] for n, size in enumerate(COPIES)]
    assert found["bytes_per_second"] == found["copies"][-1][1]
    assert found["call_seconds"] == 7e-7


@pytest.mark.parametrize("network", ["caffe_lenet", "crossbow_resnet32"])
def test_counted_operations_agree_with_the_table_of_networks(network):
    """Backward costs twice forward, except that no gradient of the pictures is taken in the first layer."""
    three = 3 * counts(network).flops_per_example
    per_example = gradient(network, 16).flops / 16
    assert 0.9 * three < per_example <= three
    assert gradient(network, 16).parameters == counts(network).parameters


@pytest.mark.usefixtures("small_networks")
def test_bytes_by_hand_of_a_linear_network():
    found = gradient("linear", 8)
    assert (found.parameters, found.flops, found.batch_bytes) == (7850, 2 * 2 * 8 * 784 * 10, 8 * 784 * FLOAT)
