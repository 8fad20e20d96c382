"""The rival in JAX trains the same network on the same batches by the same rule as the plain loop."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest

from benchmarks import plain, sides
from benchmarks.workloads import Workload, named

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


def test_where_jax_takes_no_part_the_document_says_why(monkeypatch):
    for name in ("full/CIFAR-10, M=4", "SMA LeNet, b=16, k=4"):
        built, absent = {}, {}
        sides._jax(built, absent, named(name), "cpu", (1, 2))
        assert not built
        assert "LeNet and quick alone" in absent["jax"]
    monkeypatch.setattr(sides, "find_spec", lambda name: None)
    assert sides.why_not_jax(named("LeNet/MNIST, M=1"), "cpu") == "the package jax is not installed"
    assert sides.why_not_jax(named("quick/CIFAR-10, M=4"), "cuda") == "timed on a CPU alone"


def test_who_was_left_out_by_an_option_is_named_too(monkeypatch):
    monkeypatch.setattr(sides, "_ours", lambda *given: None)
    _, absent = sides.build(named("full/CIFAR-10, M=4"), "cpu", (), (1,))
    assert absent == dict.fromkeys(("plain", "forms", "compiled", "jax"), "left out by --rivals")


def test_jax_is_tried_in_all_forms_on_all_threads_and_in_processes(monkeypatch):
    """With made-up seconds: the best form of one thread is the one that runs in processes."""
    seconds = {"jax im2col": 3.0, "jax conv": 2.0, "jax conv channels-last": 4.0, "jax im2col vmap": 1.0}
    made = []

    class Scripted:
        def __init__(self, workload, kind, count, threads=1):
            self.kind, self.execution = kind, {}
            made.append((kind, count, threads))

        def run(self, updates):
            return 0.0

        def close(self):
            pass

    monkeypatch.setattr(sides, "Workers", Scripted)
    monkeypatch.setattr(sides, "find_spec", lambda name: object())
    monkeypatch.setattr(sides, "cores", lambda: 2)
    monkeypatch.setattr(sides, "Timer", lambda device: lambda side, updates: (seconds[side.run.__self__.kind], None))
    built = {}
    sides._jax(built, {}, named("LeNet/MNIST, 10 seeds, M=1"), "cpu", (1, 2))
    assert list(built) == [
        *(f"{kind}, {count} thread{'s' * (count > 1)}" for kind in seconds for count in (1, 2)),
        "2 processes of jax im2col vmap",
    ]
    assert made[-1] == ("jax im2col vmap", 2, 1)
    assert {name: side.threads for name, side in built.items()}["jax conv, 2 threads"] == 2
