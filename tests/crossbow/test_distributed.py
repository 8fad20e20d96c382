"""SMA, EA-SGD and S-SGD over processes: the learners give the same model however they are spread."""

from __future__ import annotations

from functools import partial

import averaging_bodies as bodies
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad

from reference_impls.crossbow import SMA
from reference_impls.matex_agd import DelayedSGD
from suite.distributed.training import Training, join, spawn


@pytest.fixture(scope="module")
def alone() -> dict[str, list[float]]:
    with join(timeout=60) as group:
        return bodies.every_method(group)


@pytest.mark.processes
@pytest.mark.parametrize("workers", [2, 4])
def test_processes_equal_one_process(alone, workers):
    for found in spawn(bodies.every_method, workers, timeout=120):
        for method, values in alone.items():
            ours, one = torch.tensor(found[method], dtype=torch.float64), torch.tensor(values, dtype=torch.float64)
            torch.testing.assert_close(ours, one, rtol=1e-11, atol=1e-12, msg=lambda text, m=method: f"{m}: {text}")


def test_methods_differ(alone):
    values = [torch.tensor(row) for row in alone.values()]
    for i, one in enumerate(values):
        for other in values[i + 1 :]:
            assert (one - other).abs().max() > 1e-4


class Written:
    """Replicas of the tests' network as dictionaries of tensors, moved by functional calls."""

    def __init__(self, learners: int):
        self.module, (self.inputs, self.targets) = bodies.network(0), bodies.examples()
        self.start = {name: p.detach().clone() for name, p in self.module.named_parameters()}
        self.w = [dict(self.start) for _ in range(learners)]
        self.v = [{name: torch.zeros_like(p) for name, p in self.start.items()} for _ in range(learners)]
        self.z, self.z_prev = dict(self.start), dict(self.start)

    def loss(self, point, rows):
        fresh = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        outputs = functional_call(self.module, {**point, **fresh}, (self.inputs[rows],))
        return nn.functional.cross_entropy(outputs, self.targets[rows])

    def descend(self, j: int, t: int) -> None:
        """A Caffe velocity with momentum 0.9, decay 1e-3 and rate 0.1."""
        gradient = grad(self.loss)(self.w[j], bodies.batch_of(t, j, len(self.w)))
        for name, w in self.w[j].items():
            self.v[j][name] = 0.9 * self.v[j][name] + 0.1 * (gradient[name] + 1e-3 * w)
            self.w[j][name] = w - self.v[j][name]

    def average(self, total: dict[str, torch.Tensor]) -> None:
        """Lines 11-13 with momentum 0.9."""
        z, before = self.z, self.z_prev
        self.z, self.z_prev = {n: z[n] + total[n] + 0.9 * (z[n] - before[n]) for n in z}, z

    def check(self, values: list[float]) -> None:
        sizes = {n: value.numel() for n, value in self.module.state_dict().items() if value.is_floating_point()}
        found = dict(zip(sizes, torch.tensor(values, dtype=torch.float64).split(list(sizes.values())), strict=True))
        for name, z in self.z.items():
            torch.testing.assert_close(found[name], z.reshape(-1), rtol=1e-11, atol=1e-12)


def test_one_process_equals_the_rule_written_out(alone):
    """SMA with alpha 1/4 and a Caffe velocity in every replica."""
    written = Written(4)
    for t in range(bodies.UPDATES):
        before = [dict(w) for w in written.w]
        c = [{name: 0.25 * (w[name] - z) for name, z in written.z.items()} for w in before]
        for j, gives in enumerate(c):
            written.descend(j, t)
            written.w[j] = {name: w - gives[name] for name, w in written.w[j].items()}
        written.average({name: sum(gives[name] for gives in c) for name in written.z})
    written.check(alone["sma"])


def test_one_process_equals_two_levels_written_out(alone):
    """Section 3.3 with 4 devices of 2: alpha 1/2 towards the reference, 1/4 between references and centre."""
    written = Written(8)
    for t in range(bodies.UPDATES):
        before = [dict(w) for w in written.w]
        for j in range(8):
            written.descend(j, t)
        total = {name: torch.zeros_like(z) for name, z in written.z.items()}
        for reference in (0, 2, 4, 6):
            for name, z in written.z.items():
                r, other = before[reference][name], before[reference + 1][name]
                within, between = (other - r) / 2, (r - z) / 4
                written.w[reference][name] = written.w[reference][name] + within - between
                written.w[reference + 1][name] = written.w[reference + 1][name] - within
                total[name] += between
        written.average(total)
    written.check(alone["two-level sma"])


def test_learners_keep_their_own_batch_norm_statistics():
    inputs, targets = bodies.examples()
    with join(timeout=60) as group:
        module = bodies.network(0)
        training = Training(module, group, SMA, rate=0.1, learners=2)
        for j in range(2):
            rows = bodies.batch_of(0, j, 2)
            training.update(nn.functional.cross_entropy(module(inputs[rows]), targets[rows]))
        norm = next(m for m in module if isinstance(m, nn.BatchNorm1d))
        own = norm.running_mean.clone()
        with training.evaluated():
            mean = norm.running_mean.clone()
        assert not torch.equal(own, mean)
        assert torch.equal(norm.running_mean, own)


@pytest.mark.parametrize(("rule", "learners"), [(SMA, 0), (DelayedSGD, 2)])
def test_refuses_numbers_of_learners_that_cannot_be(rule, learners):
    with join(timeout=60) as group, pytest.raises(ValueError, match=f"learners={learners}"):
        Training(bodies.network(0), group, rule, rate=0.1, learners=learners)


def test_learners_that_do_not_fill_the_devices_of_a_process_are_refused():
    with join(timeout=60) as group, pytest.raises(ValueError, match="devices=2"):
        Training(bodies.network(0), group, partial(SMA, devices=2), rate=0.1, learners=3)
