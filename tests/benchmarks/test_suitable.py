"""Each workload is timed on one device of a machine, and what is left out says why."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks import conftest, sides
from benchmarks.workloads import named

LIGHT, HEAVY = named("LeNet/MNIST, M=16"), named("ResNet-50/224x224, M=16")


def call(workload, device):
    return SimpleNamespace(params={"workload": workload, "device": device})


def test_without_cuda_heavy_networks_wait_for_a_wish(monkeypatch):
    monkeypatch.setattr(conftest, "chosen_device", lambda: "cpu")
    assert conftest.unsuitable(call(LIGHT, "cpu"), heavy=False) == ""
    assert "--heavy" in conftest.unsuitable(call(HEAVY, "cpu"), heavy=False)
    assert conftest.unsuitable(call(HEAVY, "cpu"), heavy=True) == ""


def test_with_cuda_everything_is_timed_there(monkeypatch):
    monkeypatch.setattr(conftest, "chosen_device", lambda: "cuda")
    assert "this machine has CUDA" in conftest.unsuitable(call(LIGHT, "cpu"), heavy=True)
    assert conftest.unsuitable(call(HEAVY, "cuda"), heavy=False) == ""
    assert conftest.unsuitable(None, heavy=False) == ""  # the command line needs no device


def test_benchmarks_for_cuda_carry_the_mark_that_skips_them_with_a_reason():
    from benchmarks import test_updates

    (marks,) = [parameter.marks for parameter in test_updates.DEVICES if parameter.values == ("cuda",)]
    assert [mark.name for mark in marks] == ["gpu"]


@pytest.mark.parametrize(("cores", "counts"), [(1, (1,)), (2, (1, 2)), (16, (1, 16))])
def test_the_plain_loop_may_use_every_core(monkeypatch, cores, counts):
    monkeypatch.setattr(sides, "cores", lambda: cores)
    assert sides.thread_counts("cpu") == counts
    assert sides.thread_counts("cuda") == (1,)


def test_a_compiler_that_is_not_there_is_a_reason_and_no_failure(monkeypatch):
    monkeypatch.setattr(sides.plain, "why_not_compiled", lambda device: "RuntimeError: no working C++ compiler")
    built, absent = {}, {}
    sides._compiled(built, absent, LIGHT, "cpu", (1,), compile_all=True)
    assert (built, absent) == ({}, {"compiled": "RuntimeError: no working C++ compiler"})
    monkeypatch.setattr(sides.plain, "why_not_compiled", lambda device: "")
    sides._compiled(built, absent, HEAVY, "cpu", (1,), compile_all=False)
    assert "--compile-all" in absent["compiled"]


@pytest.mark.parametrize(
    ("workload", "experiment"),
    [
        ("LeNet/MNIST, M=16", "train"),
        ("LeNet/MNIST, 10 seeds, M=16", "inverse_law/sweep"),
        ("SMA LeNet, b=16, k=4", "train"),
        ("full/CIFAR-10, 30 learners, mu=4, hardsync", "rudra/train"),
        ("cGRU, 800 words", "inverse_law/translate"),
    ],
)
def test_ours_is_measured_beforehand_where_its_experiment_is(monkeypatch, workload, experiment):
    """A benchmark that leaves it out times a slower execution than the runs have."""
    from benchmarks import ours
    from suite.papers import registry

    monkeypatch.setattr(ours, "measure_training", lambda spec, execution, width: {"path": "measured"})
    measured = ours.execution(named(workload), "cpu", 1)["path"] == "measured"
    assert measured == (registry.experiment(experiment).measure is not None)


def test_both_sides_train_the_same_workload_and_learn(monkeypatch):
    """A short race by loss on the same pictures would differ in order; here each side's weights must simply move."""
    import torch

    from benchmarks import ours, plain

    torch.set_num_threads(1)
    chosen = {"path": "looped", "channels_last": True, "width": 1, "precision": "float32", "device": "cpu"}
    monkeypatch.setattr(ours, "execution", lambda *rest: {**chosen, "threads": 1, "deterministic": True})
    for name in (
        "LeNet/MNIST, M=16",
        "SMA LeNet, b=16, k=4",
        "full/CIFAR-10, 30 learners, mu=4, hardsync",
        "full/CIFAR-10, 30 learners, mu=4, lambda-softsync",
    ):
        workload = named(name)
        loop = plain.loop(workload, "cpu", plain.Form())
        before = [p.clone() for p in loop.modules[0].parameters()]
        loop.run(1)
        assert any(not torch.equal(a, b) for a, b in zip(before, loop.modules[0].parameters(), strict=True)), name
        session = ours.session(workload, ours.execution())
        start = session.made.problem.flat.point()
        session.update(next(iter(session.turns())))
        x = session.algorithm.model(session.state)
        assert session.t == 1
        assert torch.isfinite(x).all()
        assert not torch.equal(start, x) or workload.family == "averaging", name  # z starts where the replicas are
