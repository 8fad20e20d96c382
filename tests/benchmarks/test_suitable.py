"""Each workload is timed on one device of a machine, and what is left out says why."""

from __future__ import annotations

from benchmarks import sides
from benchmarks.workloads import WORKLOADS

BY_NAME = {workload.name: workload for workload in WORKLOADS}
LIGHT, HEAVY = BY_NAME["LeNet/MNIST, M=16"], BY_NAME["ResNet-50/224x224, M=16"]


def test_a_compiler_that_is_not_there_is_a_reason_and_no_failure(monkeypatch):
    monkeypatch.setattr(sides.plain, "why_not_compiled", lambda device: "RuntimeError: no working C++ compiler")
    light, heavy = (sides.Sides(workload, "cpu", (1,)) for workload in (LIGHT, HEAVY))
    light.add_compiled(compile_all=True)
    assert (light.made, light.absent) == ({}, {"compiled": "RuntimeError: no working C++ compiler"})
    monkeypatch.setattr(sides.plain, "why_not_compiled", lambda device: "")
    heavy.add_compiled(compile_all=False)
    assert "--compile-all" in heavy.absent["compiled"]


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
        workload = BY_NAME[name]
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
