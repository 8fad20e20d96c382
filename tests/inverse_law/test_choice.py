"""The four-step method, on synthetic systems and on a small model."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from suite.batch_size.choice import Method, choose_batch
from suite.batch_size.chosen import choose
from suite.batch_size.law import FitError, Updates
from suite.batch_size.trainer import Trainer


def test_choice_compares_measured_times():
    counted = [Updates(m, (100 + 1000 / m,)) for m in (4, 256)]
    seconds = {4: 1.0, 16: 1.0, 64: 2.5, 256: 8.0}  # an update at 16 costs no more than at 4
    choice = choose(seconds, counted)
    assert choice.batch == 16
    assert choice.predicted[64] == pytest.approx((100 + 1000 / 64) * 2.5)
    assert choice.closed_form == choice.knee.knee


def clusters():
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(4, (400,), generator=generator)
    inputs = torch.randn(400, 8, generator=generator) + 2 * F.one_hot(targets, 8)
    return inputs, targets


def linear(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Linear(8, 4)


def test_the_method_on_a_model_loss_and_data():
    choice = choose_batch(
        linear, F.cross_entropy, clusters(), rate=0.1, threshold=0.45, batches=(1, 8, 64), seeds=(0, 1), rounds=2
    )
    assert choice.batch in (1, 8, 64)
    assert choice.batch == min(choice.predicted, key=choice.predicted.get)
    assert [u.batch for u in choice.counted] == [1, 8, 64]
    counts = [sum(u.seen) / len(u.seen) for u in choice.counted]
    assert counts[0] > counts[1] >= 0.8 * counts[2], "noise costs updates"


def test_a_threshold_out_of_reach_says_so():
    with pytest.raises(FitError, match=r"threshold=0\.001 and limit=40.*none of the runs"):
        choose_batch(
            linear, F.cross_entropy, clusters(), rate=0.1, threshold=0.001, batches=(4, 64), limit=40, rounds=1
        )


def noisy(seed):
    """With statistics and masks, which a replay has to repeat."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))


def chosen(make=linear, **options):
    settings = {"rate": 0.1, "threshold": 0.45, "batches": (8, 32, 64), "seeds": (0, 1), "rounds": 2}
    return choose_batch(make, F.cross_entropy, clusters(), **{**settings, **options})


def test_updates_repeat_with_batch_norm_and_dropout():
    """A replay from any state on gives the same bits, whatever was tested in between."""
    trainer = Trainer(noisy, F.cross_entropy, clusters(), 0.1, 0.2)
    trainer.begin(0)
    straight = trainer.advance(trainer.state, 0, 20, 8)
    halfway = trainer.advance(trainer.state, 0, 10, 8)
    trainer._read(halfway, 0.1)
    trainer.advance(halfway, 10, 15, 32)
    for one, other in zip(straight, trainer.advance(halfway, 10, 20, 8), strict=True):
        assert torch.equal(one, other)


def test_a_budget_ends_with_the_answer_so_far():
    """Here it ends in the fifth of nine runs, when each batch size has been counted once."""
    method = Method(Trainer(linear, F.cross_entropy, clusters(), 0.1, 0.2), (0, 1, 2), 0.45, 20_000, None, print)
    method.tell = lambda p: setattr(method, "deadline", -math.inf) if p.doing == "counting" and p.done == 4 else None
    method.trainer.begin(0)
    method.time([8, 32, 64], 2)
    method.deadline = math.inf
    method.count([64, 32, 8], 0.01)
    assert method.answer().unfinished == "5 of 9 runs were not counted within the budget"
    assert [len(u.seen) for u in method.answer().counted] == [1, 1, 2]


def test_sizes_that_do_not_fit_into_memory_are_left_out():
    class Hungry(nn.Linear):
        def forward(self, x):
            if len(x) == 64:
                raise torch.OutOfMemoryError("tried to allocate 2 GiB")
            return super().forward(x)

    choice = chosen(lambda seed: Hungry(8, 4), batches=(1, 32, 64), seeds=(0, 1, 2, 3))
    assert choice.left_out == {64: "tried to allocate 2 GiB"}
    assert set(choice.seconds) == {1, 32}


@pytest.mark.parametrize(
    ("data", "given"),
    [
        (tuple(part.numpy() for part in clusters()), "ndarray, ndarray"),
        (torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*clusters())), "DataLoader"),
        (clusters()[:1], "Tensor"),
        ((clusters()[0], clusters()[1].numpy()), "Tensor, ndarray"),
    ],
)
def test_what_is_no_pair_of_tensors_is_refused_in_one_sentence(data, given):
    with pytest.raises(TypeError, match=rf"data must be two tensors \(inputs, targets\), not {given}; "):
        choose_batch(linear, F.cross_entropy, data, rate=0.1, threshold=0.5)


SECONDS = {256: 8.0, 4: 1.0, 64: 2.5, 16: 1.0}
THREE = [Updates(m, tuple(100 + 1000 / m + more for more in (0.0, 5.0, -5.0))) for m in (4, 256)]


def test_seconds_to_converge_are_updates_times_the_seconds_of_one():
    choice = choose(SECONDS, THREE)
    assert list(choice.predicted) == list(choice.frame()["batch"]) == [4, 16, 64, 256]
    for batch, row in zip((4, 16, 64, 256), choice.frame().to_dict("records"), strict=True):
        updates, spent = choice.law.prediction_interval(batch, 0.95), SECONDS[batch]
        assert 0 < updates.low < updates.mean < updates.high
        assert [row[name] for name in ("updates from", "updates", "updates to")] == [
            updates.low,
            updates.mean,
            updates.high,
        ]
        limits = [spent * updates.low, spent * updates.mean, spent * updates.high]
        assert [row[name] for name in ("seconds from", "seconds", "seconds to")] == pytest.approx(limits)
        assert choice.interval(batch) == choice.interval(batch, 0.95)
        assert choice.interval(batch, 0.5).high < choice.interval(batch).high
    axes = choice.plot()
    assert axes.get_xlabel() == "batch size"
    assert len(axes.lines) == 2
