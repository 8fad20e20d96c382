"""Training through the engine is the training that PyTorch's and Caffe's own rules give on the same network."""

from __future__ import annotations

import pytest
import torch
from engine_cases import bound, problem
from torch.nn import functional as F

from reference_impls.inverse_law import SGD
from suite.communication.collectives import Alone
from suite.training.build import make_optimizer
from suite.training.gradients.backend import compute_gradients
from suite.training.gradients.looped import AutogradGradients
from suite.training.schedules import rounds

RATES = (0.1, 0.1, 0.02, 0.02)  # a change on the way tells the two velocity conventions apart
MOMENTUM, DECAY = 0.9, 0.01


def through_the_engine(case, optimizer):
    algorithm = SGD(optimizer, Alone())
    state = algorithm.init(case.flat.point())
    gradients = AutogradGradients(case)
    for turn, rate in zip(rounds(1), RATES, strict=False):
        points = algorithm.points(state, turn)
        losses, sums, _ = compute_gradients(gradients, points, case.b0()[None], batch_of(turn.t)[None])
        lr = torch.tensor(rate, dtype=sums.dtype)
        state = algorithm.update(state, turn, losses, sums, lr)
    case.flat.load(state.x)
    return {name: p.detach().clone() for name, p in case.flat.module.named_parameters()}


def batch_of(t):
    return torch.arange(3 * t, 3 * t + 3)


def gradient(case, t):
    module = case.flat.module
    inputs, targets = case.fetch(batch_of(t))
    loss = F.cross_entropy(module(inputs), targets)
    return dict(zip(case.flat.names, torch.autograd.grad(loss, list(module.parameters())), strict=True))


def close(ours, theirs):
    for name, value in theirs.items():
        assert float((ours[name] - value.detach()).norm()) <= bound(value.detach(), value.numel()), name


@pytest.mark.parametrize("multipliers", [False, True])
def test_torch_rule(multipliers):
    case = problem("caffe_cifar_quick")
    factors = dict.fromkeys(case.flat.names, (1.0, 1.0))
    settings = {"rule": "torch", "momentum": MOMENTUM, "decay": DECAY}
    if multipliers:
        settings["multipliers"] = True
        module = case.flat.module
        factors = {name: (module.lr_multipliers[name], module.decay_multipliers[name]) for name in case.flat.names}
        assert len(set(factors.values())) > 1
    ours = through_the_engine(case, make_optimizer(settings, case.flat))
    case = problem("caffe_cifar_quick")
    groups = [
        {"params": [p], "weight_decay": DECAY * factors[name][1], "factor": factors[name][0]}
        for name, p in case.flat.module.named_parameters()
    ]
    solver = torch.optim.SGD(groups, lr=1.0, momentum=MOMENTUM)
    for t, rate in enumerate(RATES):
        for (name, p), group in zip(case.flat.module.named_parameters(), solver.param_groups, strict=True):
            p.grad = gradient(case, t)[name]
            group["lr"] = rate * group["factor"]
        solver.step()
    close(ours, dict(case.flat.module.named_parameters()))


def test_caffe_rule_with_multipliers():
    """V <- mu V + rate lr_mult (grad + decay decay_mult W); W <- W - V, as Caffe's SGDSolver computes it."""
    settings = {"rule": "caffe", "momentum": MOMENTUM, "decay": DECAY, "multipliers": True}
    case = problem("caffe_cifar_full")
    ours = through_the_engine(case, make_optimizer(settings, case.flat))
    case = problem("caffe_cifar_full")
    module = case.flat.module
    velocity = {name: torch.zeros_like(p) for name, p in module.named_parameters()}
    for t, rate in enumerate(RATES):
        slopes = gradient(case, t)
        with torch.no_grad():
            for name, p in module.named_parameters():
                decayed = slopes[name] + DECAY * module.decay_multipliers[name] * p
                velocity[name] = MOMENTUM * velocity[name] + rate * module.lr_multipliers[name] * decayed
                p -= velocity[name]
    close(ours, dict(module.named_parameters()))


def test_the_two_conventions_part_where_the_rate_changes():
    ways = [
        through_the_engine(
            case := problem("digits_lenet"), make_optimizer({"rule": rule, "momentum": 0.9}, case.flat)
        )
        for rule in ("caffe", "torch")
    ]
    name = "ip2.weight"
    assert float((ways[0][name] - ways[1][name]).norm()) > 1e6 * bound(ways[1][name], ways[1][name].numel())
