"""The public entry in one process: equal to plain PyTorch, generic over algorithms, clear about what it refuses."""

from __future__ import annotations

import itertools
from functools import partial

import bodies
import pytest
import torch
import torch.distributed as dist
from torch import nn

from reference_impls.crossbow import SMA
from reference_impls.inverse_law import SGD
from reference_impls.matex_agd import DelayedSGD
from suite.communication.collectives import Counted, Local
from suite.communication.group import Group
from suite.distributed.training import Training, join, share, spawn
from suite.training.buckets import Backward, buckets
from suite.training.flat import FlatModule


@pytest.fixture
def alone():
    with join(timeout=5) as group:
        yield group


def plain(updates: int, delay: int = 0) -> torch.Tensor:
    """The same network trained by torch.optim.SGD, its gradients held back ``delay`` updates, then drained."""
    module, (inputs, targets) = bodies.network(), bodies.examples()
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-2)
    waiting: list[list[torch.Tensor]] = []

    def apply(gradients: list[torch.Tensor]) -> None:
        for parameter, gradient in zip(module.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimiser.step()

    for t in range(updates):
        module.zero_grad()
        rows = bodies.batch_of(t, 0, 1)
        nn.functional.cross_entropy(module(inputs[rows]), targets[rows]).backward()
        waiting.append([p.grad.clone() for p in module.parameters()])
        if len(waiting) > delay:
            apply(waiting.pop(0))
    for gradients in waiting:
        apply(gradients)
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_equals_a_plain_loop(alone, delay):
    module, (inputs, targets) = bodies.network(), bodies.examples()
    training = Training(
        module, alone, partial(DelayedSGD, delay=delay), rate=0.1, momentum=0.9, decay=1e-2, examples=96
    )
    for t in range(20):
        rows = bodies.batch_of(t, 0, 1)
        training.update(nn.functional.cross_entropy(module(inputs[rows]), targets[rows]))
    training.finish()
    torch.testing.assert_close(training.flat.x, plain(20, delay), rtol=1e-12, atol=1e-12)


def test_any_algorithm_of_the_suite(alone):
    """Plain SGD and synchronous model averaging, which ask at other points and exchange by themselves."""
    for rule in (SGD, SMA):
        module, (inputs, targets) = bodies.network(), bodies.examples()
        training = Training(module, alone, rule, rate=0.1)
        losses = []
        for t in range(30):
            rows = bodies.batch_of(t, 0, 1)
            loss = nn.functional.cross_entropy(module(inputs[rows]), targets[rows])
            losses.append(loss.item())
            training.update(loss)
        training.finish()
        assert losses[-1] < losses[0], rule.__name__


def test_evaluation_leaves_training_where_it_was(alone):
    module = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)).double()
    training = Training(module, alone, partial(DelayedSGD, delay=1), rate=0.1)
    for _ in range(3):
        training.update(module(torch.randn(6, 5).double()).square().mean())
    weights, buffers = training.flat.x.clone(), training.flat.buffers.clone()
    with training.evaluated() as model:
        assert not model.training
        with torch.no_grad():
            model(torch.randn(6, 5).double())
    assert module.training
    assert torch.equal(training.flat.x, weights)
    assert torch.equal(training.flat.buffers, buffers)


def test_the_rate_may_change_between_updates(alone):
    module = bodies.network()
    training = Training(module, alone, DelayedSGD, rate=0.1)
    training.rate = 0.0
    before = training.flat.x.clone()
    training.update(module(torch.ones(2, 5).double()).square().mean())
    assert torch.equal(training.flat.x, before)


def test_shares_are_disjoint_equal_and_refuse_too_few():
    group = lambda rank, size: Group(dist.HashStore(), rank, size, 1.0, "gloo")
    for examples, workers in ((12, 4), (50_003, 7), (3, 3)):
        parts = [share(examples, group(rank, workers)) for rank in range(workers)]
        assert {len(part) for part in parts} == {examples // workers}
        assert len(set(itertools.chain(*parts))) == workers * (examples // workers)
    with pytest.raises(ValueError, match="2 examples cannot be shared by 3 workers"):
        share(2, group(0, 3))


def frozen() -> nn.Module:
    module = bodies.network()
    module[0].weight.requires_grad_(False)
    return module


def mixed() -> nn.Module:
    module = bodies.network()
    module[0].float()
    return module


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.ReLU(), "no parameters"),
        (frozen(), "parameter 0.weight does not require a gradient"),
        (mixed(), "one dtype and one device"),
    ],
)
def test_refuses_modules_it_cannot_train(alone, module, message):
    with pytest.raises(ValueError, match=message):
        Training(module, alone, DelayedSGD, rate=0.1)


def test_refuses_a_loss_per_example_and_a_second_backward(alone):
    module = bodies.network()
    training = Training(module, alone, partial(DelayedSGD, segmented=True), rate=0.1)
    x = torch.ones(2, 5).double()
    with pytest.raises(ValueError, match=r"as one number, not a tensor of \(2, 3\)"):
        training.update(module(x))
    module(x).sum().backward()
    with pytest.raises(RuntimeError, match="backward ran twice"):
        training.update(module(x).sum())


def test_refuses_impossible_timeouts_buckets_and_bodies():
    with pytest.raises(ValueError, match="timeout=0"), join(timeout=0):
        pass
    with pytest.raises(ValueError, match="bucket_bytes=-1"):
        buckets(FlatModule(bodies.network()), -1)
    script = lambda group: None
    script.__module__ = "__main__"
    with pytest.raises(ValueError, match="module that workers can import"):
        spawn(script, 1)


def test_buckets_cover_everything_from_the_last_parameter_to_the_first():
    flat = FlatModule(bodies.network())
    single = buckets(flat, 0)
    assert single == flat.segments[::-1]
    for limit in (100, 400, 10**6):
        parts = buckets(flat, limit)
        assert parts[0].stop == flat.d
        assert parts[-1].start == 0
        assert all(later.start == earlier.stop for later, earlier in itertools.pairwise(parts))
        assert all((p.stop - p.start) * 8 <= limit or p in single for p in parts)
    assert buckets(flat, 10**6) == (slice(0, flat.d),)


def test_segments_leave_during_backward_in_one_order():
    """When the first layer's gradient arrives, all others have left; the whole gradient leaves after backward."""
    flat = FlatModule(bodies.network())
    counted, seen = Counted(Local(1)), []
    backward = Backward(flat, 1, buckets(flat, 0), lambda rows: counted.start(rows))
    next(flat.module.parameters()).register_post_accumulate_grad_hook(lambda _: seen.append(len(counted.sizes)))
    backward.start(0)
    flat.module(torch.ones(2, 5).double()).sum().backward()
    sent = backward.finish()
    assert seen[0] >= len(flat.segments) - 2
    assert [part for part, _ in sent] == list(flat.segments[::-1])
    torch.testing.assert_close(torch.cat([p.wait() for _, p in sent[::-1]]), flat.grad)


def test_a_buffer_is_left_alone_until_its_gradient_is_due():
    flat = FlatModule(bodies.network())
    backward = Backward(flat, 3, (slice(0, flat.d),), None)
    kept = []
    for t in range(7):
        backward.start(t)
        flat.module(torch.full((2, 5), float(t)).double()).sum().backward()
        kept.append((backward.gradient, backward.gradient.clone()))
        for buffer, then in kept[-3:]:
            assert torch.equal(buffer, then)
