"""The rival in JAX trains the same network on the same batches by the same rule as the plain loop."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest

from benchmarks import plain
from benchmarks.workloads import Workload

UPDATES = 20


def apart(workload: Workload, form: str, together: bool) -> tuple[float, float]:
    """Largest difference to the plain loop after ``UPDATES``, and the least that a tensor of a seed moved in them."""
    from benchmarks.jax_sides import Loop

    made = Loop(workload, form, together)
    starts = [made.weights(seed) for seed in range(workload.runs)]
    made.run(UPDATES // 2)
    made.run(UPDATES - UPDATES // 2)
    differences, moves = [], []
    for seed, start in enumerate(starts):
        loop = plain.Loop(replace(workload, runs=1), "cpu", plain.Form())
        loop.modules = [loop.network(seed)]
        loop.solvers = [loop.solver(list(loop.modules[0].parameters()))]
        for _ in range(seed * max(1, len(plain.examples(workload)[2]) // workload.runs)):
            next(loop.batches)
        loop.run(UPDATES)
        for name, parameter in loop.modules[0].named_parameters():
            wanted, found = parameter.detach().numpy(), made.weights(seed)[name]
            assert found.shape == wanted.shape
            differences.append(abs(found - wanted).max())
            moves.append(abs(start[name] - wanted).max())
    return float(max(differences)), float(min(moves))


@pytest.fixture(scope="module")
def elsewhere():
    """A process of its own: JAX's threads and pytest's forks do not go together."""
    pytest.importorskip("jax", reason="the package jax is not installed")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize(
    ("network", "form", "runs", "together"),
    [
        ("caffe_lenet", "im2col", 1, False),
        ("caffe_lenet", "conv", 1, False),
        ("caffe_lenet", "im2col", 2, True),
        ("caffe_lenet", "conv channels-last", 2, False),
        ("caffe_cifar_quick", "im2col", 1, False),
        ("caffe_cifar_quick", "conv", 1, False),
        ("caffe_cifar_quick", "conv channels-last", 1, False),
    ],
)
def test_jax_makes_the_updates_of_the_plain_loop(network, form, runs, together, elsewhere):
    workload = Workload("", "sweep" if runs > 1 else "training", network, 4, runs=runs)
    difference, moved = elsewhere.submit(apart, workload, form, together).result()
    assert difference < 1e-4
    assert moved > 10 * difference  # so that equality is not that of networks which stand still
