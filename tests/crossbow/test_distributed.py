"""SMA, EA-SGD and S-SGD over processes: four learners give the same model however they are spread."""

from __future__ import annotations

import averaging_bodies as bodies
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad

from reference_impls import crossbow, matex_agd
from suite.distributed import Training, join, spawn


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


def test_one_process_equals_the_rule_written_out(alone):
    """SMA with alpha 1/4, momentum 0.9 and a Caffe velocity in every replica, by functional calls."""
    module, (inputs, targets) = bodies.network(0), bodies.examples()
    names = [name for name, _ in module.named_parameters()]
    start = {name: p.detach().clone() for name, p in module.named_parameters()}
    w = [dict(start) for _ in range(bodies.LEARNERS)]
    v = [{name: torch.zeros_like(p) for name, p in start.items()} for _ in range(bodies.LEARNERS)]
    z, z_prev = dict(start), dict(start)

    def loss(point, rows):
        fresh = {name: buffer.clone() for name, buffer in module.named_buffers()}
        return nn.functional.cross_entropy(
            functional_call(module, {**point, **fresh}, (inputs[rows],)), targets[rows]
        )

    for t in range(bodies.UPDATES):
        total = {name: torch.zeros_like(p) for name, p in start.items()}
        for j in range(bodies.LEARNERS):
            gradient = grad(loss)(w[j], bodies.batch_of(t, j))
            for name in names:
                correction = 0.25 * (w[j][name] - z[name])
                v[j][name] = 0.9 * v[j][name] + 0.1 * (gradient[name] + 1e-3 * w[j][name])
                w[j][name] = w[j][name] - v[j][name] - correction
                total[name] += correction
        z, z_prev = {name: z[name] + total[name] + 0.9 * (z[name] - z_prev[name]) for name in names}, z
    sizes = {name: value.numel() for name, value in module.state_dict().items() if value.is_floating_point()}
    found = dict(zip(sizes, torch.tensor(alone["sma"], dtype=torch.float64).split(list(sizes.values())), strict=True))
    for name in names:
        torch.testing.assert_close(found[name], z[name].reshape(-1), rtol=1e-11, atol=1e-12)


def test_learners_keep_their_own_batch_norm_statistics():
    inputs, targets = bodies.examples()
    with join(timeout=60) as group:
        module = bodies.network(0)
        training = Training(module, group, crossbow, rate=0.1, learners=2)
        for j in range(2):
            rows = bodies.batch_of(0, j)
            training.update(nn.functional.cross_entropy(module(inputs[rows]), targets[rows]))
        norm = next(m for m in module if isinstance(m, nn.BatchNorm1d))
        own = norm.running_mean.clone()
        with training.evaluated():
            mean = norm.running_mean.clone()
        assert not torch.equal(own, mean)
        assert torch.equal(norm.running_mean, own)


@pytest.mark.parametrize(("algorithm", "learners"), [(crossbow, 0), (matex_agd, 2)])
def test_refuses_numbers_of_learners_that_cannot_be(algorithm, learners):
    with join(timeout=60) as group, pytest.raises(ValueError, match=f"learners={learners}"):
        Training(bodies.network(0), group, algorithm, rate=0.1, learners=learners)
