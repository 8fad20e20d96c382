"""Any optimiser of torch's as the learners' own: by its class, by an instance, alone and over processes."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import optim_bodies as bodies
import pytest
import torch
from door import closure, examples, network, rows, steps, weights
from torch import nn, optim

from reference_impls import crossbow
from suite.communication.launch import spawn
from suite.optim import EASGD, ISGD, SMA, DelayedSGD, Softsync
from suite.optim.sma import Averaging

BASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "SGD": (optim.SGD, {"lr": 0.05, "momentum": 0.9, "weight_decay": 1e-3}),
    "Nesterov": (optim.SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    "AdamW": (optim.AdamW, {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.1}),
    "AdamW, amsgrad, foreach": (optim.AdamW, {"lr": 0.01, "amsgrad": True, "foreach": True}),
    "Adafactor": (optim.Adafactor, {"lr": 0.05}),
    "RMSprop": (optim.RMSprop, {"lr": 0.01, "momentum": 0.5, "centered": True}),
    "Rprop": (optim.Rprop, {"lr": 0.01}),
    "partial": (partial(optim.NAdam, betas=(0.7, 0.9)), {"lr": 0.01}),
}
ALONE = {
    "SMA": partial(SMA, learners=1, alpha=0.5, tau=10**6),
    "EASGD": partial(EASGD, learners=1, alpha=0.5, tau=10**6),
    "DelayedSGD": DelayedSGD,
    "layer-wise": partial(DelayedSGD, layerwise=True),
    "layer-wise in buckets": partial(DelayedSGD, layerwise=True, bucket_bytes=900, order="all"),
}


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("way", ALONE)
def test_a_learner_that_exchanges_with_nobody_steps_as_its_base(way: str, name: str):
    """To the bit, with groups of their own settings and a schedule of rate and momentum."""
    base, settings = BASES[name]
    ends = []
    for wrapped in (False, True):
        module = network()
        groups = [{"params": list(module[:2].parameters())}, {"params": list(module[4:].parameters()), "lr": 0.02}]
        opt = ALONE[way](module, groups, base=base, **settings) if wrapped else base(groups, **settings)
        schedule = optim.lr_scheduler.StepLR(opt, 3, 0.5)
        steps(opt, module, 1 if way in ("SMA", "EASGD") else 0, 10, schedule.step)
        ends.append(weights(module))
    if way in ("SMA", "EASGD"):  # the first update averages, when all are where they began
        assert torch.allclose(*ends, rtol=0, atol=1e-6)
    else:
        assert torch.equal(*ends)
    assert not torch.equal(ends[0], weights(network()))


@pytest.mark.parametrize("name", BASES)
def test_learners_with_a_base_are_averaged_as_in_algorithm_1(name: str):
    """Two of them beside two optimisers of torch's and the averaging by hand; a state is gone on from."""
    base, settings = BASES[name]
    module = network(torch.float64)
    opt = SMA(module, base=base, learners=2, centre_momentum=0.5, **settings)
    modules = [network(torch.float64) for _ in range(2)]
    rivals = [base(own.parameters(), **settings) for own in modules]
    inputs, targets = examples(torch.float64)
    flat = lambda own: nn.utils.parameters_to_vector(own.parameters()).detach().clone()
    z = z_before = flat(module)
    for t, learner in itertools.product(range(6), range(2)):
        batch = rows(t, learner, 2)
        opt.step(closure(opt, module, inputs[batch], targets[batch]))
        if learner:
            before = [flat(own) for own in modules]
            for j, (rival, own) in enumerate(zip(rivals, modules, strict=True)):
                rival.step(closure(rival, own, inputs[rows(t, j, 2)], targets[rows(t, j, 2)]))
                moved = flat(own) - (before[j] - z) / 2
                nn.utils.vector_to_parameters(moved, own.parameters())
            z, z_before = z + sum((w - z) / 2 for w in before) + 0.5 * (z - z_before), z
        if (t, learner) == (3, 0):
            state = opt.state_dict()
            opt = SMA(module, base=base, learners=2, centre_momentum=0.5, **settings)
            opt.load_state_dict(state)
    assert torch.allclose(flat(opt.average()), z, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("make", [partial(SMA, learners=2), partial(EASGD, alpha=0.3), partial(DelayedSGD, delay=1)])
def test_an_instance_is_wrapped_with_its_settings_and_what_it_remembers(make):
    ends = []
    for wraps in (True, False):
        module = network()
        base = optim.AdamW(module.parameters(), lr=0.01, betas=(0.8, 0.95))
        steps(base, module, 0, 3)
        module[0].requires_grad_(False)  # of which it remembers moments too
        opt = make(module, base=base) if wraps else make(module, base=optim.AdamW, lr=0.01, betas=(0.8, 0.95))
        assert opt.param_groups[0]["betas"] == (0.8, 0.95)
        assert [group["lr"] for group in opt.param_groups] == [0.01]
        steps(opt, module, 3, 4)
        ends.append(weights(opt.average()))
    assert not torch.equal(*ends), "moments were forgotten"


def test_a_group_that_is_added_is_stepped_by_the_base_and_restart_forgets():
    module = network()
    opt = SMA(module, list(module[4:].parameters()), base=optim.AdamW, lr=0.01)
    steps(opt, module, 0, 4)
    begun = weights(opt.average()[0])
    opt.add_param_group({"params": module[0].parameters(), "lr": 0.02})
    steps(opt, module, 4, 4)
    assert not torch.equal(weights(opt.average()[0]), begun)
    assert len(opt.state_dict()["state"]["base"][0]) == 6
    opt.restart()
    assert opt.state_dict()["state"]["base"] == [{}, {}]
    steps(opt, module, 8, 2)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda m: SMA(m, base=optim.LBFGS, lr=0.1), ValueError, "LBFGS asks for more gradients within a step"),
        (lambda m: SMA(m, base=optim.AdamW(m.parameters()), lr=0.1), ValueError, "has its own lr; leave it out"),
        (lambda m: SMA(m, base=SMA(network(), lr=0.1)), ValueError, "base must be an optimiser of one learner"),
        (lambda m: SMA(m, base="AdamW", lr=0.1), TypeError, "or make, a torch.optim.Optimizer, not 'AdamW'"),
        (
            lambda m: SMA(m, base=lambda params, lr: {}, lr=0.1),
            TypeError,
            "base must be, or make, a torch.optim.Optimizer, not a dict",
        ),
        (
            lambda m: SMA(m, base=optim.AdamW, lr=0.1, fused=False),
            ValueError,
            "fused=False chooses between two forms",
        ),
        (lambda m: SMA(m, base=optim.AdamW, lr=-1.0), ValueError, "Invalid learning rate"),
        (lambda m: SMA(m, base=optim.AdamW, lr=0.1, nesterov=True), TypeError, "nesterov"),
        (lambda m: SMA(m, lr=0.1, nesterov=True), TypeError, "no setting nesterov; it has lr, momentum"),
        (lambda m: DelayedSGD(m), TypeError, "DelayedSGD needs lr"),
        (lambda m: SMA(m, [{"params": m.parameters(), "maximize": True}], lr=0.1), TypeError, "no setting maximize"),
    ],
)
def test_bases_and_settings_that_cannot_be_are_refused(make, error: type, message: str):
    with pytest.raises(error, match=message):
        make(network())


@pytest.mark.parametrize("make", [SMA, DelayedSGD, Softsync, partial(ISGD, batches=2, zeta=0.1)])
def test_groups_may_each_have_a_rate_where_the_optimiser_has_none(make):
    weight, bias = (module := nn.Linear(2, 1)).parameters()
    opt = make(module, [{"params": [weight], "lr": 0.1}, {"params": [bias], "lr": 0.2}])
    assert [group["lr"] for group in opt.param_groups] == [0.1, 0.2]
    with pytest.raises(TypeError, match="needs lr"):
        make(module, [{"params": [weight], "lr": 0.1}, {"params": [bias]}])


def test_a_state_of_another_base_is_refused():
    state = SMA(network(), base=optim.AdamW, lr=0.1).state_dict()
    with pytest.raises(ValueError, match="base = 'AdamW', not 'RMSprop'"):
        SMA(network(), base=optim.RMSprop, lr=0.1).load_state_dict(state)


class Rule(crossbow.SMA):
    """A rule of somebody's own, which has no update in place."""


class Own(Averaging):
    def __init__(self, module: nn.Module, base: Any = None, **settings: Any):
        super().__init__(module, None, partial(Rule), 2, settings=settings, base=base, fused=None, group=None)


def test_a_rule_without_an_update_in_place_goes_by_its_reference_implementation():
    ends = []
    for make in (Own, partial(SMA, fused=False)):
        module = network()
        opt = make(module, lr=0.05, momentum=0.9)
        steps(opt, module, 0, 8)
        ends.append(weights(opt.average()))
    assert torch.equal(*ends)
    with pytest.raises(ValueError, match="Rule has no update in place, which base needs"):
        Own(network(), base=optim.AdamW, lr=0.05)


def test_a_module_sharded_over_processes_is_refused():
    """By ``fully_shard``, whose parameters have a mesh, or wrapped in FullyShardedDataParallel."""
    module = network()
    module[0].weight.device_mesh = "mesh"
    with pytest.raises(ValueError, match="is sharded over processes"):
        SMA(module, lr=0.1)
    wrapped = type("FullyShardedDataParallel", (nn.Sequential,), {})(network())
    with pytest.raises(ValueError, match="is wrapped in FullyShardedDataParallel"):
        SMA(wrapped, lr=0.1)


@pytest.mark.processes
def test_over_processes_a_base_steps_as_in_distributed_data_parallel():
    for name, (ours, theirs) in spawn(bodies.beside_ddp, 2, timeout=60)[0].items():
        assert torch.allclose(torch.tensor(ours), torch.tensor(theirs), rtol=1e-9, atol=1e-12), name
