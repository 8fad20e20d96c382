"""Modules moved or written to under an optimiser: taken up where that has one meaning, else refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from door import RATE, examples, network, steps, weights

from suite.optim import EASGD, ISGD, SMA, DelayedSGD, Softsync

MAKERS: dict[str, Callable[..., Any]] = {
    "SMA": SMA,
    "EASGD": lambda module, **o: EASGD(module, alpha=0.2, **o),
    "Softsync": lambda module, **o: Softsync(module, n=1, **o),
    "hardsync": lambda module, **o: Softsync(module, n=0, **o),
    "SMA, 1 learner": lambda module, **o: SMA(module, learners=1, alpha=0.2, tau=0, **o),  # the centre pulls nothing
    "Softsync, 1 learner": lambda module, **o: Softsync(module, learners=1, **o),
    "DelayedSGD": lambda module, **o: DelayedSGD(module, delay=1, **o),
    "DelayedSGD, layer-wise": lambda module, **o: DelayedSGD(module, layerwise=True, **o),
    "ISGD": lambda module, **o: ISGD(module, batches=8, zeta=0.1, **o),
}
TOGETHER = [name for name in MAKERS if MAKERS[name](network(), lr=RATE).learners == 2]
ALONE = [name for name in MAKERS if name not in TOGETHER]
FUSED = pytest.mark.parametrize("fused", [True, False], ids=["fused solver", "figures' solver"])


@FUSED
@pytest.mark.parametrize("name", TOGETHER)
def test_weights_written_for_several_learners_are_refused_until_they_are_taken_up(name: str, fused: bool):
    module, good = network(), network(seed=7)
    opt = MAKERS[name](module, lr=0.0, momentum=0.9, fused=fused)
    steps(opt, module, 0, 3)  # in the middle of a round
    module.load_state_dict(good.state_dict())
    for refused in (lambda: steps(opt, module, 0, 1), opt.average, opt.state_dict):
        with pytest.raises(ValueError, match=r"call take_up\(\) after writing"):
            refused()
    opt.zero_grad()
    module.load_state_dict(good.state_dict())  # batch norm's statistics too
    opt.take_up()
    assert torch.equal(weights(opt.average()), weights(good))
    begun = opt.t
    steps(opt, module, 0, 4)
    assert opt.t - begun == 2
    assert torch.equal(*[torch.cat([p.reshape(-1) for p in m.parameters()]) for m in (opt.average(), good)])
    assert torch.equal(module[0].weight, good[0].weight)


@FUSED
@pytest.mark.parametrize("name", ALONE)
def test_weights_written_for_one_learner_are_trained_on(name: str, fused: bool):
    module, good = network(), network(seed=7)
    opt = MAKERS[name](module, lr=0.0, momentum=0.9, fused=fused)
    steps(opt, module, 0, 3)
    module.load_state_dict(good.state_dict())
    steps(opt, module, 0, 2)
    assert torch.equal(module[0].weight, good[0].weight)
    bound = 0.01
    opt.param_groups[0]["lr"] = RATE

    @torch.no_grad()
    def clamp() -> None:
        for parameter in module.parameters():
            parameter.clamp_(-bound, bound)

    steps(opt, module, 0, 4, clamp)
    if name != "SMA, 1 learner":  # whose centre is tested
        assert max(p.abs().max().item() for p in opt.average().parameters()) <= bound
    assert max(p.abs().max().item() for p in module.parameters()) <= bound
    if name.startswith("DelayedSGD"):
        opt.finish()
    opt.take_up()
    assert torch.equal(opt.average()[0].weight, module[0].weight)


def test_written_numbers_of_a_narrow_type_are_taken_up_and_the_others_keep_what_rounding_hides():
    module = network()
    module[4].bfloat16()
    opt = DelayedSGD(module, lr=0.0)
    part = opt.vector.segments[4]
    hidden = opt.vector.x[part][1] = opt.vector.x[part][1] * (1 + 1e-4)
    opt.vector.load(opt.vector.x)
    with torch.no_grad():
        module[4].weight[0, 0] = 2
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    opt.step()
    assert opt.vector.x[part][0] == 2
    assert opt.vector.x[part][1] == hidden != module[4].weight[0, 1]


@FUSED
@pytest.mark.parametrize("name", MAKERS)
def test_backward_through_the_graph_of_older_weights_is_refused_by_autograd(name: str, fused: bool):
    module = network()
    opt = MAKERS[name](module, lr=RATE, fused=fused)
    held = []

    def compute() -> torch.Tensor:
        opt.zero_grad()
        held.append(module(examples()[0]).square().mean())
        held[-1].backward(retain_graph=True)
        return held[-1]

    opt.step(compute)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        held[0].backward()


@FUSED
def test_weights_written_for_the_one_learner_are_not_the_centres(fused: bool):
    module = network()
    opt = SMA(module, lr=0.0, learners=1, alpha=0.25, centre_momentum=0.0, fused=fused)
    begun = module[6].bias.detach().clone()
    with torch.no_grad():
        module[6].bias.add_(4)
    assert torch.equal(opt.average()[6].bias, begun)
    steps(opt, module, 0, 1)
    torch.testing.assert_close(opt.average()[6].bias, begun + 1)
    torch.testing.assert_close(module[6].bias.detach(), begun + 3)
