"""The trainings that a choice of batch size counts: plain SGD, tested on a share of the data."""

from __future__ import annotations

import itertools

import torch
from torch import nn
from torch.nn import functional as F

from suite.batch_size.choice import Method
from suite.batch_size.trainer import Trainer
from suite.data.order import Shuffled

RATE, BATCH, SEED = 0.1, 64, 3


def clusters():
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(4, (400,), generator=generator)
    return torch.randn(400, 8, generator=generator) + 2 * F.one_hot(targets, 8), targets


def normed(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))


def losses_of_plain_sgd(trainer, updates):
    """On the trainer's sample, after each update of the parameters one by one."""
    model, order = normed(SEED), Shuffled(400, BATCH, SEED)
    for number in range(updates):
        rows = order.indices(torch.tensor([number]))[0]
        model.train()
        loss = F.cross_entropy(model(trainer.inputs[rows]), trainer.targets[rows])
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        model.eval()
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter -= RATE * gradient
            yield F.cross_entropy(model(trainer.sample[0]), trainer.sample[1]).item()


def test_updates_are_counted_as_plain_sgd_tested_after_each_counts_them():
    """At a threshold halfway between two losses, so that rounding decides nothing."""
    trainer = Trainer(normed, F.cross_entropy, clusters(), RATE, 0.2)
    losses = list(losses_of_plain_sgd(trainer, 40))
    assert losses == sorted(losses, reverse=True)
    for update in (10, 25, 40):
        threshold = (losses[update - 2] + losses[update - 1]) / 2
        assert trainer.count(SEED, BATCH, threshold, 0.1, 100) == update


def test_a_model_that_comes_in_evaluation_mode_is_trained_in_training_mode():
    trainer = Trainer(lambda seed: normed(seed).eval(), F.cross_entropy, clusters(), RATE, 0.2)
    trainer.begin(SEED)
    _, buffers = trainer.state
    _, after = trainer.advance(trainer.state, 0, 1, BATCH)
    assert not torch.equal(buffers, after)


class Written:
    """Stands for a trainer: writes down which updates it is asked for."""

    def __init__(self):
        self.state, self.asked = 0, []

    def advance(self, state, first, last, batch):
        self.asked.append((batch, first, last))
        return state

    def synchronise(self):
        pass


def test_the_updates_timed_at_a_batch_size_follow_one_another_from_its_first():
    trainer, told = Written(), []
    method = Method(trainer, (0,), 0.5, 100, 0.01, 3, None, told.append)
    method.time([4, 8])
    for batch in (4, 8):
        spans = [(first, last) for size, first, last in trainer.asked if size == batch]
        assert spans == [(number, number + 1) for number in range(len(spans))]
    turns = [batch for batch, _ in itertools.groupby(trainer.asked, key=lambda asked: asked[0])]
    assert turns == [4, 8, 4, 8] * 3, "in each round once to warm up and once to measure"
    assert [(p.doing, p.batch, p.done, p.of, p.updates) for p in told] == [("timing", 4, at, 3, 0) for at in range(3)]
    assert set(method.seconds) == {4, 8}
